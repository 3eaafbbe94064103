"""Replicas that run what their profile was before: replaced one at a time, as those on a cordoned node are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.domain import plan_json
from capacity.tests.builders import actions, ago, answer, decision_of, fleet, hold, model, node, profile, ready, replica
from capacity.tests.fleet_simulation import spread, step
from capacity.tests.strategies import examples, moment

OLD = {"outdated": True}
STARTING = {"state": "starting", "since": ago(20), "in_flight": None}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ("add", "evacuate", 1)),
        ({"chat": {"max_replicas": 2}}, hold("at_max")),
        ({"nodes": [node(units=2)]}, hold("no_room")),
        ({"profiles": [profile(state="no_new")]}, hold("not_active")),
        ({"chat": {"mode": "paused"}}, hold("paused")),
    ],
)
def test_one_that_the_rest_cannot_do_without_is_replaced_first(change: dict[str, Any], expected: tuple[str, str, int]) -> None:
    assert answer(fleet([replica("a", in_flight=6), replica("c", in_flight=5, **OLD)], **change)) == expected


def test_all_of_a_model_are_replaced_one_a_pass() -> None:
    assert actions(fleet(ready(9, 9, 9, **OLD))) == [("start", "p@n1", "evacuate")]
    assert actions(fleet([*ready(9, 9, 9, **OLD), replica("n", **STARTING)])) == []
    assert actions(fleet([*ready(9, 9, 9, **OLD), replica("n")])) == [("drain", "r0", "evacuate")]


def test_a_lull_takes_no_capacity_away() -> None:
    """By the load of now two of three would do."""
    rows = ready(5, 5, 5, **OLD)
    assert answer(fleet(rows, chat={"demand_peak": 20})) == ("remove", "evacuate", 1)
    assert answer(fleet(rows, chat={"demand_peak": 21})) == ("add", "evacuate", 1)
    assert answer(fleet(rows, chat={"demand_peak": 31})) == hold("rest_over_threshold")
    assert decision_of(fleet(rows, chat={"demand_peak": 31}))["why"] == (
        "r0 runs what its profile was before and stays for now: at most 31 requests in the last 300 s, more than the 30 that "
        "3 ready replicas were measured to serve within the SLO."
    )


def test_one_that_is_only_watched_is_left_alone() -> None:
    assert actions(fleet([replica("a", in_flight=6), replica("c", in_flight=5, removable=False, **OLD)])) == []


@pytest.mark.parametrize("mode", ["advise", "add_only"])
def test_of_a_model_that_takes_nothing_back_a_drain_is_advice(mode: str) -> None:
    rows = [*ready(5, 5, **OLD), replica("n", in_flight=5)]
    found = plan_json(fleet(rows, models=[model(mode=mode)]))["actions"]
    assert [(row["op"], row["replica"], row["advice"]) for row in found] == [("drain", "r0", True)]


def test_an_ordinary_removal_takes_an_outdated_one_before_a_less_loaded_one() -> None:
    rows = [replica("a", in_flight=0), replica("b", in_flight=2, **OLD), replica("c", in_flight=3)]
    assert actions(fleet(rows, chat={"max_replicas": 2})) == [("drain", "b", "above_max")]


def test_one_that_drains_is_taken_back_only_where_it_runs_what_its_profile_is() -> None:
    leaving = {"state": "draining", "since": ago(5), "in_flight": 0, "drain_reason": "evacuate"}
    assert actions(fleet([*ready(11), replica("d", **leaving)])) == [("undrain", "d", "over_capacity")]
    assert actions(fleet([*ready(11), replica("d", **leaving, **OLD)])) == [("start", "p@n1", "over_capacity")]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (
            ready(9, **OLD),
            "r0 runs what its profile was before and the rest cannot do without it; "
            "adding 1 of p (1 gpu/h100 on n1); it is drained when that one is ready.",
        ),
        (
            [*ready(2, **OLD), replica("n", in_flight=1)],
            "r0 runs what its profile was before and the rest carries at most 3 requests in the last 300 s, so it goes.",
        ),
    ],
)
def test_the_sentence_says_what_is_wrong_with_it(rows: list[dict[str, Any]], why: str) -> None:
    assert decision_of(fleet(rows))["why"] == why


@examples(25)
@given(st.lists(st.booleans(), min_size=1, max_size=5), st.integers(0, 50), st.integers(1, 3), st.sampled_from([15, 45]))
def test_a_fleet_is_replaced_in_so_many_passes_and_never_serves_less_than_is_asked(
    outdated: list[bool], demand: int, minimum: int, takes: int
) -> None:
    rows = [replica(f"r{i}", since=moment(9000), outdated=old) for i, old in enumerate(outdated)]
    found = fleet(rows, units=20, chat={"min_replicas": minimum}, settings={"down_window_seconds": 30})
    reached = False
    for _ in range(14 * (len(rows) + minimum + 6)):
        spread(found, {"chat": demand})
        number = sum(r["state"] == "ready" for r in found["replicas"])
        reached = reached or number >= max(minimum, -(-demand // 10))
        assert not reached or number >= max(minimum, -(-demand // 10))
        plan = plan_json(found)
        assert sum(action["op"] == "drain" for action in plan["actions"]) <= 1
        found = step(found, plan, 15, takes, takes)
    assert not [r["name"] for r in found["replicas"] if r.get("outdated")]
    assert plan_json(found)["actions"] == []
