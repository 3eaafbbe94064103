"""Every case of the shared plan cases keeps what every plan must keep; left out where the cases are not beside the project."""

import json
from pathlib import Path

import pytest

from capacity.domain import plan_json
from capacity.tests.plan_checker import violations

CASES = Path(__file__).parents[3] / "shared" / "cases" / "plan"
VALID = [path for path in sorted(CASES.glob("*.json")) if json.loads(path.read_text())["expect"].get("exit", 0) == 0]

pytestmark = pytest.mark.skipif(not VALID, reason="the shared cases are not beside the project")


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_the_plan_of_a_case_keeps_what_every_plan_must_keep(path: Path) -> None:
    snapshot = json.loads(path.read_text())["snapshot"]
    assert violations(snapshot, plan_json(snapshot)) == []
