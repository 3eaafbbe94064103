"""Adding: needs, placement order, nodes, undraining, and what stopped more."""

from __future__ import annotations

from typing import Any

import pytest

from capacity.domain import plan_json
from capacity.tests.builders import (
    actions,
    ago,
    answer,
    decision_of,
    fleet,
    hold,
    measurement,
    model,
    node,
    profile,
    ready,
    replica,
    snapshot,
)

DRAINING = {"state": "draining", "since": ago(60)}


def stops(document: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = decision_of(document)["limited_by"]
    return found


def two_profiles(first: dict[str, Any], second: dict[str, Any], **overrides: Any) -> dict[str, Any]:
    """`a` and `b` with measurements from their keys `c` and `tps` (c None: unmeasured)."""
    rows = {"a": dict(first), "b": dict(second)}
    measured = []
    for name, row in rows.items():
        concurrency, tokens = row.pop("c", 10), row.pop("tps", 300)
        if concurrency is not None:
            measured.append(measurement(concurrency, profile=name, tokens_per_second=tokens))
    profiles = [profile(name, **row) for name, row in rows.items()]
    return fleet(**{"profiles": profiles, "measurements": measured, "chat": {"min_replicas": 0, "held_requests": 1}, **overrides})


def started(document: dict[str, Any]) -> list[str]:
    return [what.partition("@")[0] for op, what, _ in actions(document) if op == "start"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"priority": 1, "tps": 1}, {"tps": 900}, "a"),
        ({"tps": 300, "units": 2}, {"tps": 200, "units": 1}, "b"),
        ({"tps": 300, "hosts": 1}, {"tps": 500, "hosts": 2}, "a"),
        ({"tps": 0.3, "units": 3}, {"tps": 0.1, "units": 1, "c": 11}, "b"),
        ({"tps": 0.1}, {"tps": 0.3, "units": 3}, "a"),
        ({"c": 10}, {"c": 12}, "b"),
        ({}, {}, "a"),
        ({"c": None}, {"tps": 0}, "b"),
        ({"c": None, "priority": 1}, {}, "a"),
        ({"c": 0, "priority": 9}, {}, "b"),
        ({"state": "no_new"}, {"tps": 1}, "b"),
        ({"state": "retire"}, {"tps": 1}, "b"),
    ],
)
def test_placement_order_goes_by_priority_then_tokens_per_unit_then_concurrency_then_name(
    first: dict[str, Any], second: dict[str, Any], expected: str
) -> None:
    nodes = [node(units=9), node("n2", units=9)]
    assert started(two_profiles(first, second, nodes=nodes)) == [expected]


def test_an_unmeasured_profile_is_not_started_for_load_and_one_that_cannot_meet_the_target_neither() -> None:
    document = two_profiles({"c": None}, {"c": 0}, replicas=[replica(profile="a", in_flight=5)], chat={"held_requests": 3})
    assert answer(document) == hold("unmeasured")
    assert stops(document) == [{"kind": "unmeasured", "profile": "a"}, {"kind": "unable", "profile": "b"}]


def test_a_profile_that_cannot_meet_the_target_is_started_for_the_floor_alone() -> None:
    assert started(two_profiles({"c": 0}, {"c": 0}, chat={"min_replicas": 1})) == ["a"]
    assert answer(two_profiles({"c": 0}, {"c": 0})) == hold("unmeasured")


def test_a_model_without_any_profile_is_unmeasured() -> None:
    assert answer(snapshot(models=[model()])) == hold("unmeasured")


def test_an_assumed_or_stale_measurement_counts_as_given_for_adding() -> None:
    for status in ("assumed", "stale"):
        document = fleet(ready(11), measurements=[measurement(status=status)])
        assert answer(document) == ("add", "over_capacity", 1)
        assert answer(fleet(ready(10), measurements=[measurement(status=status)]))[0] == "hold"


def test_a_ready_replica_without_a_measurement_neither_helps_nor_hurts_an_add() -> None:
    rows = [replica("r0", in_flight=50), replica("r1", profile="q", in_flight=70)]
    document = fleet(rows, profiles=[profile(), profile("q")], measurements=[measurement(50)])
    found = decision_of(document)
    assert (found["demand_low"], found["capacity_ready"]) == (120, 120)
    rows[0]["in_flight"] = 51
    assert answer(document) == ("add", "over_capacity", 1)


def test_several_needs_ask_as_many_as_the_largest_and_take_the_first_reason() -> None:
    assert answer(fleet(ready(50), chat={"min_replicas": 2})) == ("add", "below_min", 4)
    assert answer(fleet(ready(10), chat={"min_replicas": 4})) == ("add", "below_min", 3)
    assert answer(fleet(chat={"min_replicas": 1, "held_requests": 35})) == ("add", "below_min", 4)


def test_the_step_does_not_bind_the_floor_and_binds_what_goes_beyond_it() -> None:
    assert answer(fleet(chat={"min_replicas": 7})) == ("add", "below_min", 7)
    document = fleet(chat={"min_replicas": 6, "held_requests": 100})
    assert answer(document) == ("add", "below_min", 6)
    assert stops(document) == [{"kind": "step", "max": 4}]


def test_a_wake_takes_one_profile_only() -> None:
    document = two_profiles(
        {"tps": 900, "resource": "gpu/a"},
        {},
        nodes=[node(), node("n2", resources={"gpu/a": 2})],
        chat={"min_replicas": 0, "held_requests": 35},
    )
    assert answer(document) == ("add", "wake", 2)
    assert started(document) == ["a", "a"]
    assert [stop["kind"] for stop in stops(document)] == ["room"]


def test_a_wake_starts_one_of_an_unmeasured_profile() -> None:
    assert answer(fleet(measurements=[], chat={"min_replicas": 0, "held_requests": 35})) == ("add", "wake", 1)


@pytest.mark.parametrize(
    ("chat", "expected"),
    [
        ({"last_arrival_at": ago(120)}, ("add", "wake", 1)),
        ({"last_arrival_at": ago(121)}, hold("steady")),
        ({"woken_at": ago(120)}, ("add", "wake", 1)),
        ({"woken_at": ago(-3600)}, ("add", "wake", 1)),
        ({"held_requests": None}, hold("metrics_unknown")),
        ({"held_requests": "many", "woken_at": ago(1)}, ("add", "wake", 1)),
        ({"held_requests": 3, "max_replicas": 0}, hold("at_max")),
    ],
)
def test_a_wake_counts_up_to_and_including_its_seconds(chat: dict[str, Any], expected: tuple[str, str, int]) -> None:
    assert answer(fleet(chat={"min_replicas": 0, **chat})) == expected


def test_one_that_drains_comes_back_before_one_is_started_least_loaded_first() -> None:
    drains = [replica(f"d{load}", in_flight=load, **DRAINING) for load in (7, 3, 5)]
    document = fleet([*ready(20), *drains])
    # 20 + 3 > 10 + 10, 20 + 3 + 5 ≤ 30: two come back.
    assert actions(document) == [("undrain", "d3", "over_capacity"), ("undrain", "d5", "over_capacity")]


def test_of_equal_loads_the_latest_to_drain_comes_back_and_unknown_loads_last() -> None:
    drains = [
        replica("unknown", **{**DRAINING, "in_flight": None}),
        replica("early", in_flight=1, state="draining", since=ago(500)),
        replica("late", in_flight=1, state="draining", since=ago(5)),
    ]
    assert actions(fleet([*ready(11), *drains])) == [("undrain", "late", "over_capacity")]
    assert actions(fleet([*ready(11), drains[0]])) == [("undrain", "unknown", "over_capacity")]


@pytest.mark.parametrize(
    "change",
    [
        {"drained_for": "other", "drain_reason": "reclaimed"},
        {"drain_reason": "start_timeout"},
        {"nodes": ["gone"]},
        {"nodes": []},
        {"nodes": ["cordoned"]},
        {"nodes": ["silent"]},
        {"profile": "old"},
    ],
)
def test_what_may_not_come_back_is_left_and_a_new_one_is_started(change: dict[str, Any]) -> None:
    document = fleet(
        [*ready(11), replica("d", **{**DRAINING, "in_flight": 1, **change})],
        models=[model(), model("other", min_replicas=0)],
        nodes=[node(), node("cordoned", schedulable=False), node("silent", ready=False)],
        profiles=[profile(), profile("old", state="no_new", priority=1)],
    )
    assert actions(document) == [("start", "p@n1", "over_capacity")]


def test_one_comes_back_at_the_maximum_but_not_above_it() -> None:
    rows = [*ready(16, 5), replica("d", in_flight=1, **DRAINING)]
    assert actions(fleet(rows, chat={"max_replicas": 3})) == [("undrain", "d", "over_capacity")]
    assert answer(fleet(rows, chat={"max_replicas": 2})) == hold("at_max")


def test_one_comes_back_at_a_limit_but_not_above_it() -> None:
    rows = [*ready(15, 6), replica("d", in_flight=1, **DRAINING)]
    scoped = {"chat": {"scope": "t"}, "scopes": [{"name": "t"}]}
    at_limit = fleet(rows, quotas=[{"scope": "t", "target": "gpu", "limit": 3}], **scoped)
    assert actions(at_limit) == [("undrain", "d", "over_capacity")]
    above = fleet(rows, quotas=[{"scope": "t", "target": "gpu", "limit": 2}], **{**scoped, "chat": {"scope": "t"}})
    assert answer(above) == hold("at_limit")
    assert stops(above) == [{"kind": "limit", "scope": "t", "target": "gpu", "limit": 2, "used": 3}]


def test_needs_that_met_a_promise_fill_what_was_given_back_or_wait_for_it() -> None:
    given = replica("o1", model="other", profile="o", in_flight=1, drained_for="chat", drain_reason="reclaimed", **DRAINING)
    both = {
        "models": [model(), model("other", min_replicas=0)],
        "profiles": [profile(), profile("o", model="other")],
    }
    assert answer(fleet([*ready(11), given], units=3, **both)) == ("add", "reclaim_fill", 1)
    assert answer(fleet([*ready(11), given], units=2, **both)) == hold("awaiting_reclaim")


def test_several_hosts_are_different_nodes_best_fit_first_all_or_none() -> None:
    nodes = [node("n1", 4), node("n2", 2), node("n3", 3), node("n4", 1)]
    document = fleet(nodes=nodes, profiles=[profile(hosts=2, units=2)])
    assert actions(document) == [("start", "p@n2+n3", "below_min")]
    document = fleet(nodes=nodes, profiles=[profile(hosts=4, units=2)])
    assert answer(document) == hold("no_room")
    assert stops(document) == [{"kind": "room", "resource": "gpu/h100", "free": 10, "largest_free": 4}]


def test_a_replica_holds_its_units_in_every_state_and_on_each_of_its_nodes() -> None:
    rows = [
        replica("a", nodes=["n1", "n2"], state=state, since=ago(10)) for state in ("starting", "unready", "draining", "ready")
    ]
    for row in rows:
        document = fleet(
            [row], nodes=[node("n1", 3), node("n2", 5)], profiles=[profile(hosts=2, units=2)], chat={"min_replicas": 2}
        )
        assert stops(document) == [{"kind": "room", "resource": "gpu/h100", "free": 4, "largest_free": 3}]


def test_a_full_unit_of_another_class_is_no_room() -> None:
    document = fleet(nodes=[node(resources={"gpu": 8, "gpu/h100/mig-1g": 8})])
    assert answer(document) == hold("no_room")


def test_units_of_a_start_without_a_node_stay_free_also_beyond_one_node() -> None:
    waiting = replica("w", model="other", profile="o", nodes=[], state="starting", since=ago(5))
    both = {
        "models": [model(), model("other", min_replicas=0)],
        "profiles": [profile(), profile("o", model="other", units=2)],
    }
    assert answer(fleet([waiting], nodes=[node("n1", 1), node("n2", 1)], **both)) == hold("no_room")
    assert answer(fleet([waiting], nodes=[node("n1", 2), node("n2", 1)], **both)) == ("add", "below_min", 1)


def test_a_node_that_backs_off_is_named_with_the_first_end() -> None:
    backoffs = [
        {"model": "chat", "profile": "p", "node": name, "until": ago(-seconds)}
        for name, seconds in (("n1", 90), ("n2", 30), ("gone", 5))
    ]
    document = fleet(nodes=[node("n1"), node("n2")], backoffs=backoffs)
    assert answer(document) == hold("no_room")
    assert stops(document) == [
        {"kind": "room", "resource": "gpu/h100", "free": 0, "largest_free": 0},
        {"kind": "backoff", "profile": "p", "until": ago(-30)},
    ]


def test_a_profile_that_takes_no_new_ones_is_named_once_it_was_passed_over() -> None:
    document = two_profiles({"state": "no_new", "tps": 900}, {})
    assert stops(document) == [{"kind": "not_active", "profile": "a"}]
    assert stops(two_profiles({}, {"state": "no_new", "tps": 1})) == []


def test_one_hot_replica_is_named_and_nothing_is_added() -> None:
    plan = plan_json(fleet(ready(14, 2), chat={"scope": "t"}, scopes=[{"name": "t"}]))
    assert [(problem["code"], problem["subject"]) for problem in plan["problems"]] == [("hotspot", "replica:r0")]
    assert not plan["actions"]


def test_rounds_go_by_priority_then_the_largest_unmet_share() -> None:
    names = ("a", "b", "c")
    document = fleet(
        [replica(f"{name}0", model=name, in_flight=10) for name in names],
        models=[model("a", held_requests=20), model("b", held_requests=30), model("c", held_requests=10, priority=1)],
        profiles=[profile(model=name) for name in names],
        measurements=[measurement(model=name) for name in names],
        units=7,
    )
    # c by priority; then one each, b (30/10) before a (20/10); and of the last one b (20/20) before a (10/20).
    assert {name: answer(document, name)[2] for name in names} == {"a": 1, "b": 2, "c": 1}


def test_a_need_of_any_size_ends() -> None:
    document = fleet(
        nodes=[node(units=10**12)], chat={"min_replicas": 0, "held_requests": 10**12}, settings={"max_step_up": 10**12}
    )
    found = decision_of(document)
    assert found["outcome"] == "add"
    assert found["limited_by"] == [{"kind": "step", "max": found["count"]}]
