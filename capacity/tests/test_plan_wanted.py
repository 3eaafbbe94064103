"""What pages and other scalers are told: the replicas that a model should have, and the capacity of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from capacity.domain import parse_snapshot, plan
from capacity.domain.types import Decision
from capacity.tests.builders import Document, ago, fleet, measurement, ready, replica

STARTING = {"state": "starting", "since": ago(5)}


def decision(document: Document) -> Decision:
    return plan(parse_snapshot(document)).decisions[0]


@pytest.mark.parametrize(
    ("document", "wanted"),
    [
        (fleet(ready(7, 7)), 2),
        (fleet(ready(1, 1)), 1),
        (fleet(ready(1, 1), chat={"min_replicas": 2}), 2),
        (fleet(ready(25)), 3),
        (fleet(ready(25), units=2), 3),
        (fleet(ready(25), units=1), 3),
        (fleet(ready(99)), 10),
        (fleet(ready(99), chat={"max_replicas": 4}), 4),
        (fleet(ready(25), chat={"mode": "paused"}), 1),
        (fleet(chat={"min_replicas": 3}, quotas=None), 3),
        (fleet([*ready(1, 1), replica("u", state="unready", since=ago(500))]), 2),
        (fleet([*ready(1, 1), replica("s", **STARTING)]), 2),
        (fleet([*ready(1, 1), replica("s", state="starting", since=ago(901))]), 2),
        (fleet([*ready(1, 1), replica("d", state="draining")]), 2),
        (fleet([], chat={"min_replicas": 0}), 0),
        (fleet(None), None),
    ],
)
def test_wanted_is_what_lives_with_what_is_missing_and_without_what_goes(document: Any, wanted: int | None) -> None:
    assert decision(document).wanted == wanted


@pytest.mark.parametrize(
    ("document", "rest"),
    [
        (fleet(ready(1, 1, 1)), 20),
        (fleet([*ready(1, 1), replica("s", **STARTING)]), 20),
        (fleet(ready(1)), None),
        (fleet(ready(1, 1, removable=False)), None),
        (fleet(ready(1, 1), measurements=[measurement(status="assumed")]), 0),
        (fleet(None), None),
    ],
)
def test_the_rest_is_what_stays_measured_if_one_were_taken_back(document: Any, rest: int | None) -> None:
    assert decision(document).rest_capacity == rest
