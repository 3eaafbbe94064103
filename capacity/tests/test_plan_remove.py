"""Removing: the rules one after another, victims, bounds, idle models, evacuation and stuck starts."""

from __future__ import annotations

from typing import Any

import pytest

from capacity.domain import plan_json
from capacity.tests.builders import actions, ago, answer, decision_of, fleet, hold, measurement, node, profile, ready, replica

STARTING = {"state": "starting", "since": ago(5), "in_flight": None}
UNREADY = {"state": "unready", "since": ago(5)}
GONE = ("remove", "rest_under_threshold", 1)
TO_ZERO = {"min_replicas": 0, "scale_to_zero": True}


def drained(document: dict[str, Any]) -> list[str]:
    return [what for op, what, _ in actions(document) if op in ("drain", "cancel")]


@pytest.mark.parametrize(
    ("rows", "change", "expected"),
    [
        ([9, None, 0], {}, hold("metrics_unknown")),
        ([1, 1], {"chat": {"held_requests": None}}, hold("metrics_unknown")),
        ([1, 1], {"chat": {"demand_peak": [3]}}, hold("metrics_unknown")),
        ([1, 1], {"chat": {"min_replicas": 2, "last_change_at": ago(1)}}, hold("at_min")),
        ([1, 1], {"chat": {"min_replicas": 0}}, GONE),
        ([1], {"chat": {"min_replicas": 0}}, hold("at_min")),
        ([1, 1], {"chat": {"last_change_at": ago(299)}}, hold("cooldown")),
        ([1, 1], {"chat": {"last_change_at": ago(300)}}, GONE),
        ([1, 1], {"chat": {"last_change_at": ago(-9)}}, hold("cooldown")),
        ([1, 1], {"chat": {"demand_seconds": 299}}, hold("cooldown")),
        ([1, 1], {"chat": {"demand_seconds": 300}}, GONE),
        ([1, 1], {"chat": {"demand_seconds": 400, "down_window_seconds": 500}}, hold("cooldown")),
        ([1, 1], {"chat": {"demand_peak": 7}}, hold("rest_over_threshold")),
        ([1, 1], {"chat": {"demand_peak": 6}}, GONE),
        ([4, 2], {"chat": {"held_requests": 1}}, hold("rest_over_threshold")),
        ([4, 2], {"settings": {"scale_down_fraction": "3/5"}}, hold("rest_over_threshold")),
        ([4, 2], {"settings": {"scale_down_fraction": "3/5"}, "chat": {"scale_down_fraction": "1"}}, GONE),
        ([0, 0], {"settings": {"scale_down_fraction": "0"}}, hold("rest_over_threshold")),
        ([7, 1, 1], {}, hold("survivor_over_threshold")),
        ([7, 0, 0], {}, GONE),
        ([1, 1], {"measurements": []}, hold("unmeasured")),
        ([1, 1], {"measurements": [measurement(status="assumed")]}, hold("unmeasured")),
        ([1, 1], {"measurements": [measurement(status="stale")]}, hold("unmeasured")),
        ([1, 1], {"measurements": [measurement(status="stale")], "settings": {"stale_measurements": "use"}}, GONE),
        ([1, 1], {"measurements": None}, hold("unmeasured")),
        ([0, 0], {"measurements": [measurement(0)]}, hold("rest_over_threshold")),
    ],
)
def test_the_first_rule_that_fails_is_the_reason(rows: list[Any], change: dict[str, Any], expected: tuple[str, str, int]) -> None:
    assert answer(fleet(ready(*rows), **change)) == expected


@pytest.mark.parametrize(
    ("sampled", "expected"), [(45, GONE), (45.5, hold("metrics_unknown")), (-45, GONE), (-46, hold("metrics_unknown"))]
)
def test_a_load_is_good_up_to_its_age_on_both_sides_of_now(sampled: float, expected: tuple[str, str, int]) -> None:
    assert answer(fleet(ready(1, 1, sampled_at=ago(sampled)))) == expected


@pytest.mark.parametrize("load", [-1, 2.5, True, "3", [3], {}, None, 10**12 + 1])
def test_what_is_no_whole_number_is_an_unknown_load_and_no_fault(load: Any) -> None:
    assert answer(fleet(ready(0, load))) == hold("metrics_unknown")


def test_a_draining_replica_blocks_and_its_load_counts() -> None:
    document = fleet([*ready(1, 1), replica("d", state="draining", in_flight=None)])
    assert answer(document) == hold("draining")
    assert decision_of(document)["demand_high"] == 12


def test_one_that_starts_is_the_victim_and_two_that_start_are_waited_for() -> None:
    one = [*ready(0, 0), replica("s", **STARTING)]
    assert actions(fleet(one)) == [("cancel", "s", "rest_under_threshold")]
    assert answer(fleet([*one, replica("t", **STARTING)])) == hold("starting_covers")
    assert answer(fleet([*ready(0, 0), replica("s", **STARTING, removable=False)])) == hold("starting_covers")
    assert answer(fleet([*ready(7, 7), replica("s", **STARTING)])) == hold("starting_covers")


def test_while_one_is_unready_only_such_a_one_goes_and_the_ready_all_stay() -> None:
    rows = [*ready(6, 0), replica("u", in_flight=1, **UNREADY)]
    assert actions(fleet(rows)) == [("drain", "u", "rest_under_threshold")]
    assert answer(fleet([*ready(6, 7), replica("u", in_flight=1, **UNREADY)])) == hold("rest_over_threshold")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"priority": 1}, {"tps": 900}, "b0"),
        ({"tps": 100}, {"tps": 200}, "a0"),
        ({"tps": 100}, {"tps": 150, "units": 2}, "b0"),
        ({"tps": 100, "status": "assumed"}, {"tps": 1}, "a0"),
        ({"c": None}, {"tps": 1}, "a0"),
    ],
)
def test_of_several_profiles_the_least_useful_gives_first(first: dict[str, Any], second: dict[str, Any], expected: str) -> None:
    profiles, measured, rows = [], [], []
    for name, row in (("a", dict(first)), ("b", dict(second))):
        concurrency, tokens, status = row.pop("c", 10), row.pop("tps", 300), row.pop("status", "current")
        profiles.append(profile(name, **row))
        rows += [replica(f"{name}{number}", profile=name) for number in range(2)]
        if concurrency is not None:
            measured.append(measurement(concurrency, profile=name, tokens_per_second=tokens, status=status))
    document = fleet(rows, profiles=profiles, measurements=measured, chat={"min_replicas": 1, "demand_peak": 1})
    assert drained(document) == [expected]


def test_the_next_profile_gives_where_the_first_cannot_and_the_reason_is_that_of_the_first() -> None:
    both = {
        "profiles": [profile("big", priority=0), profile("small", priority=1)],
        "measurements": [measurement(32, profile="big"), measurement(6, profile="small")],
    }
    rows = [replica("b", profile="big", in_flight=3), replica("s", profile="small", in_flight=1), replica("t", profile="small")]
    # Without big: 4 < 0.7 × 12 holds, but big's 3 on s (1): 1 + 1.5 < 4.2. So big goes.
    assert drained(fleet(rows, **both)) == ["b"]
    rows[0]["in_flight"] = 12
    # Without big 13 ≥ 8.4; without t 13 < 26.6.
    assert drained(fleet(rows, **both)) == ["t"]
    rows[0]["in_flight"] = 27
    assert answer(fleet(rows, **both)) == hold("rest_over_threshold")


def test_never_falls_back_to_a_busier_one_of_the_profile() -> None:
    assert answer(fleet(ready(9, 1, 1))) == hold("survivor_over_threshold")
    assert drained(fleet(ready(6, 0, 0))) == ["r1"]


def test_the_youngest_goes_and_the_future_is_as_young_as_now() -> None:
    rows = [replica("old", since=ago(900)), replica("none", since=None), replica("b", since=ago(-50)), replica("a", since=ago(0))]
    assert drained(fleet(rows)) == ["a"]
    assert drained(fleet(rows[:2])) == ["old"]


def test_what_may_not_be_stopped_stays_and_counts() -> None:
    fixed = [replica(f"f{number}", removable=False) for number in range(2)]
    assert answer(fleet(fixed)) == hold("not_removable")
    assert drained(fleet([*fixed, replica("r", in_flight=2)])) == ["r"]
    assert answer(fleet(fixed, chat={"last_change_at": ago(1)})) == hold("cooldown")
    assert decision_of(fleet(fixed))["removes_below"] is None


@pytest.mark.parametrize(
    ("rows", "chat", "expected"),
    [
        ([9, 9, 9], {"max_replicas": 2, "last_change_at": ago(1)}, ("remove", "above_max", 1)),
        ([9, None], {"max_replicas": 1}, hold("metrics_unknown")),
        ([15, 15, 15], {"max_replicas": 2}, hold("at_max")),
        ([0], {"max_replicas": 0, "min_replicas": 0}, hold("at_min")),
    ],
)
def test_above_the_maximum_one_goes_a_pass(rows: list[Any], chat: dict[str, Any], expected: tuple[str, str, int]) -> None:
    assert answer(fleet(ready(*rows), chat=chat)) == expected


def test_above_the_maximum_a_starting_one_goes_first_and_a_draining_one_is_waited_for() -> None:
    rows = [*ready(9, 9), replica("s", **STARTING), replica("t", **STARTING)]
    assert actions(fleet(rows, chat={"max_replicas": 3})) == [("cancel", "s", "above_max")]
    assert answer(fleet([*ready(9, 9), replica("d", state="draining")], chat={"max_replicas": 2})) == hold("draining")
    assert answer(fleet(ready(1, 1, removable=False), chat={"max_replicas": 1})) == hold("not_removable")


@pytest.mark.parametrize(
    ("row", "chat", "expected"),
    [
        ({}, {**TO_ZERO, "last_arrival_at": ago(600)}, hold("idle_wait")),
        ({}, {**TO_ZERO, "last_arrival_at": ago(601)}, ("remove", "idle", 1)),
        ({}, {**TO_ZERO, "last_arrival_at": ago(9000), "woken_at": ago(400)}, hold("idle_wait")),
        ({}, TO_ZERO, ("remove", "idle", 1)),
        ({"since": ago(600)}, TO_ZERO, hold("idle_wait")),
        ({"since": ago(600), "removable": False}, TO_ZERO, hold("idle_wait")),
        ({"since": ago(60)}, {**TO_ZERO, "last_arrival_at": ago(700)}, ("remove", "idle", 1)),
        ({}, {**TO_ZERO, "last_change_at": ago(299)}, hold("cooldown")),
        ({}, {**TO_ZERO, "demand_peak": 40}, ("remove", "idle", 1)),
        ({"in_flight": 1}, TO_ZERO, hold("at_min")),
        ({"in_flight": None}, TO_ZERO, hold("metrics_unknown")),
        ({}, {"min_replicas": 0}, hold("at_min")),
        ({}, {"min_replicas": 1, "scale_to_zero": True}, hold("at_min")),
        ({"removable": False}, TO_ZERO, hold("not_removable")),
        (STARTING, TO_ZERO, hold("at_min")),
        (UNREADY, {**TO_ZERO, "last_arrival_at": ago(700)}, ("remove", "idle", 1)),
    ],
)
def test_the_last_replica_goes_only_when_idle_long_enough(row: Any, chat: dict[str, Any], expected: tuple[str, str, int]) -> None:
    assert answer(fleet([replica(**row)], chat=chat)) == expected


NODES = [node(), node("old", schedulable=False)]


def test_one_on_a_cordoned_node_is_drained_where_the_rest_carries_all() -> None:
    rows = [replica("a", in_flight=5), replica("c", nodes=["old"], in_flight=5)]
    document = fleet(rows, nodes=NODES, chat={"last_change_at": ago(1), "demand_peak": 90})
    assert actions(document) == [("drain", "c", "evacuate")]
    assert answer(document) == ("remove", "evacuate", 1)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ("add", "evacuate", 1)),
        ({"chat": {"max_replicas": 2}}, hold("at_max")),
        ({"nodes": [node(units=1), NODES[1]]}, hold("no_room")),
        ({"nodes": None}, hold("rest_over_threshold")),
        ({"quotas": None}, hold("policy_unavailable")),
        ({"profiles": [profile(state="no_new")]}, hold("not_active")),
        ({"measurements": [measurement(status="assumed")]}, ("add", "evacuate", 1)),
    ],
)
def test_one_that_the_rest_cannot_do_without_is_replaced_first(change: dict[str, Any], expected: tuple[str, str, int]) -> None:
    rows = [replica("a", in_flight=6), replica("c", nodes=["old"], in_flight=5)]
    assert answer(fleet(rows, **{"nodes": NODES, **change})) == expected


def test_the_floor_is_kept_while_a_node_is_left() -> None:
    assert answer(fleet([replica(nodes=["old"])], nodes=NODES)) == ("add", "evacuate", 1)
    replaced = [replica(nodes=["old"]), replica("n", **STARTING)]
    assert answer(fleet(replaced, nodes=NODES)) == hold("starting_covers")
    assert actions(fleet([replica(nodes=["old"]), replica("n")], nodes=NODES)) == [("drain", "r1", "evacuate")]


def test_an_idle_last_replica_goes_as_idle_and_one_that_may_not_be_stopped_is_passed_over() -> None:
    last = replica(nodes=["old"])
    assert answer(fleet([last], nodes=NODES, chat=TO_ZERO)) == ("remove", "idle", 1)
    assert answer(fleet([{**last, "removable": False}], nodes=NODES)) == hold("at_min")


def test_a_retired_profile_is_left_like_a_cordoned_node_without_the_nodes_known() -> None:
    rows = [replica("a", in_flight=5), replica("c", profile="q", in_flight=5)]
    both = {"profiles": [profile(), profile("q", state="retire")], "measurements": [measurement(), measurement(profile="q")]}
    assert actions(fleet(rows, nodes=None, **both)) == [("drain", "c", "evacuate")]


@pytest.mark.parametrize(
    ("row", "op"),
    [
        ({**STARTING, "since": ago(900)}, "cancel"),
        ({**UNREADY, "since": ago(900), "in_flight": None}, "drain"),
    ],
)
def test_a_stuck_one_ends_at_exactly_its_timeout_whatever_else_is_known(row: Any, op: str) -> None:
    document = fleet([*ready(0, None), replica("s", **row)], chat={"last_change_at": ago(1), "held_requests": None})
    assert actions(document) == [(op, "s", "start_timeout")]
    assert answer(document) == ("remove", "start_timeout", 1)
    assert actions(fleet([*ready(0, None), replica("s", **{**row, "since": ago(899)})])) == []


def test_all_stuck_ones_end_at_once_and_ride_along_with_an_add() -> None:
    stuck = [replica(name, **{**STARTING, "since": ago(901)}) for name in ("t", "s")]
    assert answer(fleet([*ready(0, 0), *stuck])) == ("remove", "start_timeout", 2)
    document = fleet([*ready(11), *stuck])
    assert answer(document) == ("add", "over_capacity", 1)
    assert [op for op, _, _ in actions(document)] == ["cancel", "cancel", "start"]
    blocked = fleet([*ready(11), *stuck], units=3)
    assert answer(blocked) == ("remove", "start_timeout", 2)
    assert decision_of(blocked)["limited_by"][0]["kind"] == "room"


def test_a_stuck_one_that_may_not_be_stopped_stays_and_blocks_nothing() -> None:
    rows = [*ready(0, 0), replica("s", **{**STARTING, "since": ago(901)}, removable=False)]
    assert actions(fleet(rows)) == [("drain", "r0", "rest_under_threshold")]


def test_an_unready_one_is_live_within_its_grace() -> None:
    rows = [*ready(5), replica("u", state="unready", since=ago(119))]
    assert answer(fleet(rows, chat={"min_replicas": 2})) == hold("at_min")
    rows[1]["since"] = ago(120)
    assert answer(fleet(rows, chat={"min_replicas": 2})) == ("add", "below_min", 1)


@pytest.mark.parametrize(
    ("document", "adds_above", "removes_below"),
    [
        (fleet(ready(1, 1)), 20, 7),
        (fleet([*ready(1, 1), replica("s", **STARTING)]), 30, 14),
        (fleet(ready(1, 1), chat={"max_replicas": 2}), None, 7),
        (fleet(ready(1, 1), chat={"min_replicas": 2}), 20, None),
        (fleet(ready(1, 1), measurements=[measurement(status="assumed")]), 20, None),
        (fleet(ready(1, None)), 20, 7),
        (fleet(ready(None, None)), 20, None),
        (fleet(ready(1, 1, 1), concurrency=9), 27, 13),
        (fleet(ready(1, 1), chat={"mode": "paused"}), None, None),
        (fleet(None), None, None),
    ],
)
def test_two_numbers_say_what_would_change_the_answer(document: Any, adds_above: int | None, removes_below: int | None) -> None:
    found = decision_of(document)
    assert (found["adds_above"], found["removes_below"]) == (adds_above, removes_below)


def test_the_numbers_stand_in_every_decision_also_of_a_paused_model() -> None:
    found = decision_of(fleet([*ready(3, None), replica("s", **STARTING)], chat={"mode": "paused", "held_requests": 2}))
    assert (found["demand_low"], found["demand_high"]) == (5, 15)
    assert (found["capacity_ready"], found["capacity_starting"]) == (20, 10)
    unbounded = plan_json(fleet(ready(3, None), measurements=[]))["decisions"][0]
    assert unbounded["demand_high"] is None
