"""Every shared case of the plan, as its README says that it is to be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest

from capacity.plan_file import answer

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "plan"


def cases() -> list[Any]:
    """One a file; without the shared folder one that is skipped."""
    if not CASES.is_dir():
        return [pytest.param(None, id="none", marks=pytest.mark.skip(reason="../shared is not here"))]
    found = [json.loads(path.read_text()) for path in sorted(CASES.glob("*.json"))]
    return [pytest.param(case, id=case["name"]) for case in found]


def matches(pattern: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Whether the entry has these keys and values; nodes in any order; `mentions` is contained anywhere."""
    for key, value in pattern.items():
        if key == "mentions":
            if value not in json.dumps(entry, ensure_ascii=False):
                return False
        elif key not in entry or (sorted(entry[key]) != sorted(value) if key == "nodes" else entry[key] != value):
            return False
    return True


@pytest.mark.parametrize("case", cases())
def test_the_shared_case_is_planned_as_the_design_forces_it(case: dict[str, Any]) -> None:
    expected = case["expect"]
    out, err = StringIO(), StringIO()
    status = answer("-", "json", False, BytesIO(json.dumps(case["snapshot"]).encode()), out, err)
    assert status == expected.get("exit", 0), err.getvalue()
    if status:
        assert not out.getvalue()
        lines = err.getvalue().splitlines()
        assert all(any(line.startswith(f"{path}: ") for line in lines) for path in expected.get("faults", ()))
        return
    plan = json.loads(out.getvalue())
    decisions = {decision["model"]: decision for decision in plan["decisions"]}
    for name, wanted in expected.get("decisions", {}).items():
        check_decision(decisions[name], wanted)
    check_actions(plan["actions"], expected)
    for pattern in expected.get("problems", ()):
        assert any(matches(pattern, problem) for problem in plan["problems"]), (pattern, plan["problems"])


def check_decision(decision: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for key, value in wanted.items():
        if key == "limited_by":
            assert all(any(matches(pattern, stop) for stop in decision[key]) for pattern in value), decision
        else:
            assert decision[key] in value if isinstance(value, list) else decision[key] == value, (key, decision)


def check_actions(actions: list[dict[str, Any]], expected: Mapping[str, Any]) -> None:
    for pattern in expected.get("actions", ()):
        plain = {key: value for key, value in pattern.items() if key != "times"}
        found = sum(matches(plain, action) for action in actions)
        assert found == pattern["times"] if "times" in pattern else found >= 1, (pattern, actions)
    for pattern in expected.get("no_actions", ()):
        assert not any(matches(pattern, action) for action in actions), (pattern, actions)
    assert len(actions) == expected.get("actions_total", len(actions)), actions
