"""Limits, modes, stores that could not be read, and what is wrong in what was read."""

from __future__ import annotations

from typing import Any

import pytest

from capacity.domain import parse_snapshot, plan, plan_document, plan_json
from capacity.domain.types import Model, Snapshot
from capacity.tests.builders import (
    AT,
    Document,
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
)
from quotas.domain.policy import build_policy

STUCK = {"state": "starting", "since": ago(1000)}


def owned(*quotas: Document, rows: Any = (), **overrides: Any) -> Document:
    """The model `chat` of the scope `team`, which is below `org` and `programme`."""
    scopes = [{"name": "org"}, {"name": "programme"}, {"name": "team", "parents": ["org", "programme"], "funding_parent": "org"}]
    chat = {"scope": "team", "min_replicas": 3, **overrides.pop("chat", {})}
    return fleet(rows, **{"scopes": scopes, "quotas": list(quotas), "chat": chat, **overrides})


def limit(scope: str, target: str, units: int, used: int) -> Document:
    return {"kind": "limit", "scope": scope, "target": target, "limit": units, "used": used}


@pytest.mark.parametrize(
    ("scope", "target", "units", "count"),
    [
        ("team", "gpu/h100", 2, 2),
        ("org", "gpu", 1, 1),
        ("programme", "gpu", 1, 1),
        ("org", "gpu/h1", 0, 3),
        ("org", "gpu/h100/mig-1g", 0, 3),
        ("org", "cpu", 0, 3),
        ("org", "model:chat", 2, 2),
        ("org", "gpu", 0, 0),
        ("org", "gpu", None, 3),
    ],
)
def test_every_limit_above_binds_by_segments_of_its_class(scope: str, target: str, units: int | None, count: int) -> None:
    document = owned({"scope": scope, "target": target, "limit": units})
    assert decision_of(document)["count"] == count
    stopped = [limit(scope, target, units, units)] if units is not None and count < 3 else []
    assert decision_of(document)["limited_by"] == stopped


def test_each_limit_that_stops_it_is_named_and_only_those() -> None:
    rows = [{"scope": "org", "target": "gpu", "limit": 2}, {"scope": "team", "target": "gpu/h100", "limit": 2}]
    document = owned(*rows, {"scope": "programme", "target": "gpu", "limit": 9})
    assert decision_of(document)["limited_by"] == [limit("org", "gpu", 2, 2), limit("team", "gpu/h100", 2, 2)]


def test_a_model_counts_once_for_an_ancestor_that_it_has_by_two_paths() -> None:
    scopes = [{"name": "top"}, {"name": "a", "parents": ["top"]}, {"name": "b", "parents": ["top"]}]
    scopes.append({"name": "team", "parents": ["a", "b"], "funding_parent": "a"})
    document = owned({"scope": "top", "target": "gpu", "limit": 3}, scopes=scopes)
    assert decision_of(document)["count"] == 3


def test_usage_counts_units_on_all_hosts_of_every_state_and_of_paused_models() -> None:
    rows = [
        replica(f"o{n}", model="other", profile="o", state=state, since=ago(1))
        for n, state in enumerate(("starting", "draining"))
    ]
    document = owned(
        {"scope": "org", "target": "gpu", "limit": 10},
        rows=rows,
        models=[model(scope="team", min_replicas=3), model("other", scope="org", mode="paused")],
        profiles=[profile(), profile("o", model="other", units=2, hosts=2)],
    )
    assert decision_of(document)["count"] == 2
    assert decision_of(document)["limited_by"] == [limit("org", "gpu", 10, 10)]


def test_a_limit_of_one_profile_lets_the_next_start() -> None:
    document = owned(
        {"scope": "org", "target": "gpu/h100", "limit": 1},
        nodes=[node(resources={"gpu/h100": 4, "gpu/l4": 4})],
        profiles=[profile(priority=1), profile("l", resource="gpu/l4")],
    )
    assert [what for _, what, _ in actions(document)] == ["p@n1", "l@n1", "l@n1"]


def test_a_model_without_a_scope_is_bound_by_none_and_comes_last() -> None:
    document = fleet(
        models=[model(held_requests=10, min_replicas=0, priority=9, last_arrival_at=ago(9)), model("b", scope="team")],
        replicas=[*ready(10), replica("b0", model="b", in_flight=20)],
        profiles=[profile(), profile(model="b")],
        measurements=[measurement(), measurement(model="b")],
        units=3,
        scopes=[{"name": "team"}],
        quotas=[{"scope": "team", "target": "gpu", "limit": 9}],
    )
    assert answer(document, "b") == ("add", "over_capacity", 1)
    assert answer(document) == hold("no_room")
    assert [(p["code"], p["subject"]) for p in plan_json(document)["problems"] if p["code"] == "no_owner"] == [
        ("no_owner", "model:chat")
    ]


@pytest.mark.parametrize(
    ("store", "reason", "named"),
    [
        ("quotas", "policy_unavailable", "quotas"),
        ("scopes", "policy_unavailable", "quotas"),
        ("measurements", "policy_unavailable", "measurements"),
        ("nodes", "room_unknown", "nodes"),
    ],
)
def test_a_store_that_could_not_be_read_holds_what_needs_it_and_is_named(store: str, reason: str, named: str) -> None:
    for rows in ([], ready(11), [*ready(11), replica("d", state="draining", in_flight=0)]):
        document = fleet(rows, **{store: None, "chat": {"held_requests": 9}})
        assert answer(document) == hold(reason)
        assert decision_of(document)["limited_by"] == [{"kind": "unknown", "store": named}]


def test_the_strongest_unknown_is_the_reason() -> None:
    nothing = {"nodes": None, "measurements": None, "quotas": None, "scopes": None}
    assert answer(fleet(None, **nothing, chat={"mode": "paused"})) == hold("inventory_unknown")
    assert answer(fleet([], **nothing, chat={"mode": "paused"})) == hold("paused")
    assert answer(fleet([], **nothing)) == hold("policy_unavailable")
    assert answer(fleet(ready(30), **nothing, chat={"max_replicas": 1, "held_requests": 1})) == hold("at_max")
    assert answer(owned({"scope": "org", "target": "gpu", "limit": 0}, nodes=None)) == hold("at_limit")


def test_an_unknown_inventory_has_no_capacity_not_a_capacity_of_nothing() -> None:
    found = decision_of(fleet(None, chat={"held_requests": 4}))
    assert [found[key] for key in ("demand_low", "demand_high", "capacity_ready", "capacity_starting")] == [4, None, None, None]


def test_removals_that_need_no_store_go_on() -> None:
    for store in ("quotas", "scopes", "nodes"):
        assert answer(fleet(ready(1, 1), **{store: None})) == ("remove", "rest_under_threshold", 1)


@pytest.mark.parametrize(
    ("mode", "rows", "expected"),
    [
        ("auto", ready(1, 1), [("drain", False)]),
        ("add_only", ready(1, 1), [("drain", True)]),
        ("advise", ready(1, 1), [("drain", True)]),
        ("paused", ready(1, 1), []),
        ("add_only", ready(11), [("start", False)]),
        ("advise", ready(11), [("start", True)]),
        ("paused", ready(11), []),
        ("add_only", [*ready(11), replica("d", state="draining", in_flight=0)], [("undrain", False)]),
        ("advise", [*ready(11), replica("d", state="draining", in_flight=0)], [("undrain", True)]),
        ("add_only", [*ready(1), replica("s", **STUCK)], [("cancel", False)]),
        ("advise", [*ready(1), replica("s", **STUCK)], [("cancel", True)]),
        ("paused", [*ready(1), replica("s", **STUCK)], []),
        ("add_only", [*ready(1), replica("s", **{**STUCK, "state": "unready"})], [("drain", True)]),
        ("add_only", [*ready(1, 1), replica("s", state="starting", since=ago(1))], [("cancel", True)]),
        ("add_only", [*ready(1), replica("c", nodes=["old"])], [("drain", True)]),
        ("add_only", [*ready(9), replica("c", nodes=["old"], in_flight=9)], [("start", False)]),
    ],
)
def test_what_a_mode_does_and_what_it_only_advises(mode: str, rows: list[Document], expected: list[tuple[str, bool]]) -> None:
    document = fleet(rows, nodes=[node(), node("old", schedulable=False)], chat={"mode": mode})
    found = plan_json(document)["actions"]
    assert [(action["op"], action.get("advice", False)) for action in found] == expected
    assert all(action.get("advice") is not False for action in found)


def test_advised_models_are_decided_against_what_the_others_left() -> None:
    names = {"a": "add_only", "b": "advise", "c": "advise"}
    document = fleet(
        models=[model(name, mode=mode, priority=9 if mode == "advise" else 0) for name, mode in names.items()],
        profiles=[profile(model=name) for name in names],
        measurements=[],
        units=2,
    )
    assert {name: answer(document, name)[0] for name in names} == {"a": "add", "b": "add", "c": "hold"}


def test_bounds_that_contradict_hold_the_model_and_what_it_holds_counts() -> None:
    document = owned({"scope": "org", "target": "gpu", "limit": 3}, rows=ready(5))
    snapshot = parse_snapshot(document)
    rows = (*snapshot.models, Model(name="crossed", scope="org", min_replicas=4, max_replicas=2, bounds_conflict=True))
    decisions = {decision.model: decision for decision in plan(replace_models(snapshot, rows)).decisions}
    assert (decisions["crossed"].outcome, decisions["crossed"].reason) == ("hold", "bounds_conflict")
    assert decisions["crossed"].adds_above is None
    assert decisions["chat"].count == 2


def replace_models(snapshot: Snapshot, models: tuple[Model, ...]) -> Snapshot:
    return Snapshot(
        at=AT,
        nodes=snapshot.nodes,
        models=models,
        profiles=snapshot.profiles,
        measurements=snapshot.measurements,
        replicas=snapshot.replicas,
        scopes=snapshot.scopes,
        quotas=snapshot.quotas,
    )


def test_a_policy_built_before_gives_the_same_plan() -> None:
    snapshot = parse_snapshot(owned({"scope": "org", "target": "gpu", "limit": 2}))
    policy = build_policy(snapshot.scopes or (), snapshot.quotas or ())
    assert plan_document(plan(snapshot, policy)) == plan_document(plan(snapshot)) == plan_document(plan(snapshot, policy))


def problems(document: Document) -> list[tuple[str, str]]:
    return [(problem["code"], problem["subject"]) for problem in plan_json(document)["problems"]]


@pytest.mark.parametrize(
    ("row", "listed"),
    [
        ({"nodes": ["gone"]}, True),
        ({"nodes": ["n1", "n1"]}, True),
        ({"nodes": []}, True),
        ({"nodes": [], "state": "starting", "since": ago(1)}, False),
        ({"nodes": ["n1"]}, False),
    ],
)
def test_a_replica_on_nodes_that_cannot_be_is_listed(row: Document, listed: bool) -> None:
    assert problems(owned(rows=[replica(**row)])) == ([("unknown_node", "replica:r1")] if listed else [])
    assert problems(owned(rows=[replica(**row)], nodes=None)) == []


def test_a_guarantee_is_for_a_class_that_nodes_offer_or_profiles_take() -> None:
    rows = [{"scope": "org", "target": target, "guarantee": 0} for target in ("gpu", "gpu/l4", "gpu/h100", "tpu")]
    document = owned(*rows, nodes=[node(resources={"gpu/l4": 1})])
    assert problems(document) == [("guarantee_not_leaf", "scope:org")]
    assert "gpu, tpu" in plan_json(document)["problems"][0]["detail"]


def test_actions_are_removals_by_model_and_name_then_what_was_granted_in_order() -> None:
    document = fleet(
        [
            replica("z1", model="z"),
            replica("z2", model="z"),
            replica("a9", model="a", **STUCK),
            replica("a1", model="a", in_flight=11),
        ],
        models=[model("a"), model("z"), model("m", priority=1, held_requests=20, min_replicas=0)],
        profiles=[profile(model=name) for name in ("a", "m", "z")],
        measurements=[measurement(model=name) for name in ("a", "m", "z")],
    )
    assert actions(document) == [
        ("cancel", "a9", "start_timeout"),
        ("drain", "z1", "rest_under_threshold"),
        ("start", "p@n1", "wake"),
        ("start", "p@n1", "wake"),
        ("start", "p@n1", "over_capacity"),
    ]
    assert [decision["model"] for decision in plan_json(document)["decisions"]] == ["a", "m", "z"]


def test_the_design_s_example_says_what_the_design_says() -> None:
    document = fleet(
        [replica("r1", model="llama-70b", profile="h100x2", in_flight=130, sampled_at=ago(2))],
        models=[model("llama-70b", scope="acme/search", max_replicas=8)],
        nodes=[node(units=8)],
        profiles=[profile("h100x2", model="llama-70b", units=2)],
        measurements=[measurement(128, model="llama-70b", profile="h100x2", tokens_per_second=4400.0)],
        scopes=[{"name": "acme"}, {"name": "acme/search", "parents": ["acme"]}],
        quotas=[{"scope": "acme", "target": "gpu/h100", "limit": 16}],
    )
    plan_found = plan_json(document)
    assert plan_found["actions"] == [
        {"op": "start", "model": "llama-70b", "profile": "h100x2", "nodes": ["n1"], "reason": "over_capacity"}
    ]
    assert plan_found["decisions"][0]["why"] == (
        "130 requests in flight are more than the 128 that 1 ready replica was measured to serve within the SLO; "
        "adding 1 of h100x2 (2 gpu/h100 on n1)."
    )
