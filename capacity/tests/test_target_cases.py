"""The worked answers of the design, as their README says that they are to be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from capacity.target_file import run

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "target"
LISTS = ("plan", "binding", "missing", "tight", "notes")


def cases() -> list[Any]:
    if not CASES.is_dir():
        return [pytest.param(None, id="none", marks=pytest.mark.skip(reason="../shared is not here"))]
    return [pytest.param(json.loads(path.read_text()), id=path.stem) for path in sorted(CASES.glob("*.json"))]


def near(value: Any, wanted: Any, key: str) -> bool:
    if isinstance(wanted, float) and isinstance(value, int | float):
        return abs(value - wanted) <= (0.0006 if key == "share" else abs(wanted) * 1e-4)
    return bool(value == wanted)


def matches(pattern: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return all(
        key in row and (sorted(row[key]) == sorted(value) if key == "nodes" else near(row[key], value, key))
        for key, value in pattern.items()
    )


@pytest.mark.parametrize("case", cases())
def test_the_worked_case_is_answered_as_the_design_works_it_out(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(case["snapshot"]))
    status = run([*case["args"], "--snapshot", str(file), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert status == case["exit"]
    for key, wanted in case["expect"].items():
        if key in LISTS:
            assert all(any(matches(pattern, row) for row in answer[key]) for pattern in wanted), (key, wanted, answer[key])
            assert wanted or not answer[key]
        else:
            assert near(answer[key], wanted, key), (key, wanted, answer[key])
    if case["exit"] != 2:
        named = {row["profile"] for row in case["expect"].get("plan", ())}
        assert not [row for row in answer["plan"] if row["add"] and row["profile"] not in named]
