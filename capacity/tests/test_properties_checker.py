"""The checker of plans finds what is wrong with a plan: a sound one passes, and each way to spoil it is named."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from capacity.tests.plan_checker import violations
from capacity.tests.strategies import moment

Document = dict[str, Any]


def busy_snapshot() -> Document:
    """`chat` at 25 of 20 with room for two and a limit of 4; `calm` with three replicas for one request."""
    replicas = [
        {"name": f"{model}-{i}", "model": model, "profile": "h", "nodes": ["n1"], "state": "ready", "in_flight": load}
        for model, loads in (("chat", (13, 12)), ("calm", (1, 0, 0)))
        for i, load in enumerate(loads)
    ]
    return {
        "format": "llmgw.snapshot/1", "at": moment(0), "nodes": [
            {"name": "n1", "resources": {"gpu/h100": 6}}, {"name": "n2", "resources": {"gpu/h100": 3}},
            {"name": "n3", "resources": {"gpu/h100": 1}, "schedulable": False},
        ],
        "models": [{"name": "chat", "scope": "t", "max_replicas": 4}, {"name": "calm", "scope": "t"}],
        "profiles": [{"model": m, "name": "h", "resource": "gpu/h100", "units": 1} for m in ("chat", "calm")],
        "measurements": [
            {"model": m, "profile": "h", "max_concurrency": 10, "tokens_per_second": 400} for m in ("chat", "calm")
        ],
        "replicas": replicas, "scopes": [{"name": "t", "parents": []}],
        "quotas": [{"scope": "t", "target": "gpu", "limit": 6}],
    }  # fmt: skip


def sound_plan() -> Document:
    chat = {"model": "chat", "outcome": "add", "reason": "over_capacity", "count": 1, "demand_low": 25, "demand_high": 25}
    calm = {"model": "calm", "outcome": "remove", "reason": "rest_under_threshold", "count": 1, "demand_low": 1, "demand_high": 1}
    same = {"capacity_starting": 0, "limited_by": [], "why": "as the numbers say"}
    return {
        "format": "llmgw.plan/1", "at": moment(0), "problems": [],
        "decisions": [
            calm | same | {"capacity_ready": 30, "adds_above": 30, "removes_below": 14},
            chat | same | {"capacity_ready": 20, "adds_above": 20, "removes_below": 7},
        ],
        "actions": [
            {"op": "drain", "replica": "calm-1", "reason": "rest_under_threshold"},
            {"op": "start", "model": "chat", "profile": "h", "nodes": ["n1"], "reason": "over_capacity"},
        ],
    }  # fmt: skip


def test_a_sound_plan_has_no_violation() -> None:
    assert violations(busy_snapshot(), sound_plan()) == []


def second_start(plan: Document) -> None:
    plan["actions"].append(deepcopy(plan["actions"][1]))
    plan["decisions"][1]["count"] = 2


def nothing_for_chat(plan: Document, reason: str) -> None:
    del plan["actions"][1]
    plan["decisions"][1] |= {"outcome": "hold", "reason": reason, "count": 0}


def nothing_for_calm(plan: Document, reason: str) -> None:
    del plan["actions"][0]
    plan["decisions"][0] |= {"outcome": "hold", "reason": reason, "count": 0}


SPOILED: list[tuple[Callable[[Document], Any], str]] = [
    (lambda p: p["decisions"].pop(), "not one decision a model"),
    (lambda p: p["decisions"].reverse(), "by name"),
    (lambda p: p["decisions"][0].pop("removes_below"), "keys of the decision"),
    (lambda p: p["decisions"][0].update(reason="because"), "is not in the list"),
    (lambda p: p["decisions"][0].update(why=" "), "no sentence"),
    (lambda p: p["decisions"][0].update(count=2), "but its actions are"),
    (lambda p: p["actions"].reverse(), "do not come first"),
    (lambda p: p["actions"][0].update(replica="calm-9"), "refers to what does not exist"),
    (lambda p: p["actions"][0].update(op="cancel"), "cancel of a ready replica"),
    (lambda p: p["actions"][0].update(advice=True), "advice of a model"),
    (lambda p: p["actions"][0].update(replica="calm-0"), "takes calm-0"),
    (lambda p: p["actions"][1].update(nodes=["n3"]), "not all schedulable"),
    (lambda p: p["actions"][1].update(nodes=["n2"]), "fit best"),
    (lambda p: p["actions"][1].update(nodes=["n1", "n2"]), "1 hosts"),
    (lambda p: p["actions"][1].update(reason="wake"), "where the need is over_capacity"),
    (second_start, "breaks the limit"),
    (second_start, "is for no need"),
    (lambda p: nothing_for_chat(p, "no_room"), "can still be added"),
    (lambda p: nothing_for_calm(p, "cooldown"), "would do"),
    (lambda p: p["decisions"][1].update(demand_low=24), "demand_low is 24"),
    (lambda p: p["decisions"][1].update(adds_above=21), "adds_above is 21"),
    (lambda p: p["decisions"][0].update(removes_below=15), "removes_below is 15"),
    (lambda p: p["decisions"][1]["limited_by"].append({"kind": "max_replicas", "max": 5}), "is not so"),
    (lambda p: p["problems"].append({"code": "no_owner", "subject": "model:chat", "detail": "-"}), "problem no_owner"),
    (lambda p: p["problems"].append({"code": "hotspot", "subject": "model:calm", "detail": "-"}), "no replica is hot"),
]


@pytest.mark.parametrize(("spoil", "named"), SPOILED, ids=[f"{i}-{named}" for i, (_, named) in enumerate(SPOILED)])
def test_a_spoiled_plan_is_named(spoil: Callable[[Document], Any], named: str) -> None:
    plan = sound_plan()
    spoil(plan)
    found = violations(busy_snapshot(), plan)
    assert any(named in sentence for sentence in found), found


def test_a_start_over_the_maximum_is_named() -> None:
    snapshot = busy_snapshot()
    snapshot["models"][0] |= {"max_replicas": 2}
    assert any("of at most 2" in sentence for sentence in violations(snapshot, sound_plan()))


def test_a_removal_at_the_threshold_is_named() -> None:
    snapshot = busy_snapshot()
    snapshot["models"][1]["held_requests"] = 13
    assert any("rest_over_threshold" in sentence for sentence in violations(snapshot, sound_plan()))


def test_a_stuck_start_that_stays_is_named() -> None:
    snapshot = busy_snapshot()
    snapshot["replicas"][4] |= {"state": "starting", "since": moment(900)}
    assert any("are stuck" in sentence for sentence in violations(snapshot, sound_plan()))
