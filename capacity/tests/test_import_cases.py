"""Every shared case of `bench_import`, as its README says that it is to be read."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from .import_matching import check_every_answer, matches

SHARED = Path(__file__).resolve().parents[3] / "shared"
CASES = SHARED / "cases" / "import"


def cases() -> list[Any]:
    """Without the shared folder one that is skipped."""
    if not CASES.is_dir():
        return [pytest.param(None, id="none", marks=pytest.mark.skip(reason="../shared is not here"))]
    found = [json.loads(path.read_text()) for path in sorted(CASES.glob("*.json"))]
    return [pytest.param(case, id=case["name"]) for case in found]


def run(case: dict[str, Any]) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    files = [str(SHARED / "data" / name) for name in case.get("files") or [case["file"]]]
    slo = ["--slo", case["slo"]] if case.get("slo") else []
    try:
        call_command("bench_import", "--preview", "--json", *slo, *files, stdout=out, stderr=err)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("case", cases())
def test_the_shared_case_is_read_as_it_must_be(case: dict[str, Any]) -> None:
    status, out, err = run(case)
    allowed = case["exit"] if isinstance(case["exit"], list) else [case["exit"]]
    assert status in allowed, err
    assert "Traceback" not in err
    if status:
        assert not out
        assert all(name in err for name in case.get("files") or [case["file"]])
        return
    answer = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is no standard JSON"))
    check_every_answer(answer)
    assert matches(case["expect"], answer), out
