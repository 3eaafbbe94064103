"""What guarantees and limits come to in passes one after another: quotas.md, Properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from capacity.domain import plan_json
from capacity.tests.fleet_simulation import spread, step
from capacity.tests.strategies import Document, examples, moment, often
from quotas.domain.policy import QuotaPolicy, build_policy
from quotas.domain.types import Quota, Scope, covers

GPU, OTHER = "gpu/a", "gpu/b"
SCOPES = "stuvw"
UNITS = st.one_of(st.none(), st.integers(0, 8))
CONCURRENCY = 10


@st.composite
def worlds(draw: st.DrawFn, *, forest: bool, nodes: int = 1) -> Document:
    """Models of a graph of scopes on one class; all run full, and what they want beyond that differs."""
    capacity = draw(st.integers(3, 12))
    document: Document = {
        "format": "llmgw.snapshot/1", "at": moment(0), "models": [], "profiles": [], "measurements": [], "replicas": [],
        "settings": {"reclaim_wait_seconds": 0, "max_step_up": 100, "min_run_seconds": 0, "down_window_seconds": 30},
        "nodes": [{"name": f"n{i}", "resources": {GPU: capacity} | ({} if forest else {OTHER: 3})} for i in range(nodes)],
        "scopes": [draw(scope_rows(i, forest)) for i in range(len(SCOPES))], "quotas": [],
    }  # fmt: skip
    for scope in draw(st.sets(st.sampled_from(SCOPES), min_size=2)):
        row = {
            "scope": scope,
            "target": draw(often(GPU, "gpu", weight=4)),
            "guarantee": draw(st.one_of(st.integers(1, 8), UNITS)),
        }
        row |= {"limit": draw(often(None, 0, 2, 4, 6, 8, weight=5))}
        row |= {"weight": draw(often(1, 3, 0)), "lend": draw(often(True, False))}
        document["quotas"].append(row | ({"guarantee": None} if row["target"] == "gpu" else {}))
    free = dict.fromkeys((node["name"] for node in document["nodes"]), capacity)
    for i in range(draw(st.integers(2, 4))):
        add_model(draw, document, f"m{i}", free)
    return document


@st.composite
def scope_rows(draw: st.DrawFn, place: int, forest: bool) -> Document:
    above = SCOPES[:place]
    parents = draw(st.lists(st.sampled_from(above), max_size=1 if forest else 2, unique=True)) if above else []
    parents = draw(often(parents, [], weight=1))
    return {"name": SCOPES[place], "parents": parents, "funding_parent": parents[0] if parents else None}


def add_model(draw: st.DrawFn, document: Document, name: str, free: dict[str, int]) -> None:
    units = draw(often(1, 2, 4, weight=3))
    model = {"name": name, "min_replicas": 0, "scope": draw(st.sampled_from(SCOPES)), "priority": draw(st.integers(0, 1))}
    document["models"].append(model | {"mode": draw(often("auto", "add_only", "paused", weight=9))})
    document["profiles"].append({"model": name, "name": "p", "resource": GPU, "units": units})
    document["measurements"].append(
        {"model": name, "profile": "p", "max_concurrency": CONCURRENCY, "tokens_per_second": 100, "status": "current"}
    )
    if OTHER in document["nodes"][0]["resources"] and draw(st.booleans()):
        second = {"model": name, "name": draw(st.sampled_from(["a", "z"]))}
        document["profiles"].append(second | {"resource": draw(st.sampled_from([GPU, OTHER])), "units": draw(st.integers(1, 3))})
        measured = {"profile": second["name"], "max_concurrency": 5, "tokens_per_second": draw(st.sampled_from([40, 200]))}
        document["measurements"].append({"model": name, "status": "current"} | measured)
    for number in range(draw(st.sampled_from([0, 0, 2, 5, 12]))):
        node = next((node for node, left in free.items() if left >= units), None)
        if node is None:
            return
        free[node] -= units
        replica = {"name": f"{name}-{number}", "model": name, "profile": "p", "nodes": [node], "state": "ready"}
        document["replicas"].append(replica | {"since": moment(900 + number)})


def demands(draw: st.DrawFn, world: Document) -> dict[str, int]:
    """What each model is asked, in requests that fill so many replicas; at least all that it has."""
    held = units_held(world, each=1)
    return {m["name"]: CONCURRENCY * (held.get(m["name"], 0) + draw(st.integers(0, 5))) for m in world["models"]}


def units_held(world: Document, target: str = GPU, each: int | None = None) -> dict[str, int]:
    """Model → units that it holds of what the target covers; with `each` so many a replica, whatever it takes."""
    units = {(p["model"], p["name"]): each or (p["units"] if covers(target, p["resource"]) else 0) for p in world["profiles"]}
    found: dict[str, int] = {}
    for replica in world["replicas"]:
        model = replica["model"]
        found[model] = found.get(model, 0) + units[model, replica["profile"]]
    return found


def policy_of(world: Document) -> QuotaPolicy:
    scopes = [Scope(name=s["name"], parents=tuple(s["parents"]), funding_parent=s["funding_parent"]) for s in world["scopes"]]
    return build_policy(scopes, [Quota(**row) for row in world["quotas"]])


def under(world: Document, policy: QuotaPolicy, scope: str, target: str = GPU) -> int:
    """Units of the target that the models below the scope hold, each once."""
    owners = {m["name"]: m["scope"] for m in world["models"]}
    return sum(held for m, held in units_held(world, target).items() if scope in policy.tenancy.ancestors(owners[m]))


def settle(world: Document, demand: Mapping[str, int], most: int = 60) -> Document:
    """Passes until nothing is done any more; no usage rises at or over a limit on the way."""
    policy = policy_of(world)
    limits = [row for row in world["quotas"] if row["limit"] is not None]
    for _ in range(most):
        spread(world, demand)
        plan = plan_json(world)
        acts = [action for action in plan["actions"] if not action.get("advice")]
        draining = any(replica["state"] == "draining" for replica in world["replicas"])
        if not acts and not draining:
            return world
        before = {(row["scope"], row["target"]): under(world, policy, row["scope"], row["target"]) for row in limits}
        world = step(world, plan, 15, 15, 15)
        for row in limits:
            after = under(world, policy, row["scope"], row["target"])
            assert after <= max(row["limit"], before[row["scope"], row["target"]]), (row, plan["actions"])
    raise AssertionError(f"still acting after {most} passes: {acts}")


@examples(150)
@given(worlds(forest=True), st.data())
def test_on_a_forest_everybody_gets_what_he_is_entitled_to_and_limits_are_reached(world: Document, data: st.DataObject) -> None:
    demand = demands(data.draw, world)
    for model in world["models"]:
        model["mode"] = "auto"
    world = settle(world, demand)
    policy = policy_of(world)
    units = {profile["model"]: profile["units"] for profile in world["profiles"]}
    assert len(units) == len(world["profiles"])
    found = policy.entitlements(GPU, world["nodes"][0]["resources"][GPU])
    for row in world["quotas"]:
        assert row["limit"] is None or under(world, policy, row["scope"], row["target"]) <= row["limit"], row
    for scope in SCOPES:
        below = [m["name"] for m in world["models"] if scope in policy.tenancy.ancestors(m["scope"])]
        wanted = sum(units[m] * -(-demand[m] // CONCURRENCY) for m in below)
        owed = min(found.assured(scope), wanted_within_limits(world, policy, scope, demand, units), wanted)
        assert under(world, policy, scope) >= owed - sum(units[m] for m in below), (scope, owed)


def wanted_within_limits(
    world: Document, policy: QuotaPolicy, scope: str, demand: Mapping[str, int], units: Mapping[str, int]
) -> int:
    """What may be wanted below the scope once every limit on the way up has had its say."""
    limits = {row["scope"]: row["limit"] for row in world["quotas"] if row["limit"] is not None}
    own = sum(units[m["name"]] * -(-demand[m["name"]] // CONCURRENCY) for m in world["models"] if m["scope"] == scope)
    children = [s["name"] for s in world["scopes"] if s["funding_parent"] == scope]
    return min(limits.get(scope, 10**12), own + sum(wanted_within_limits(world, policy, c, demand, units) for c in children))


@examples(150)
@given(worlds(forest=False, nodes=2), st.data())
def test_on_any_graph_the_same_wishes_come_to_rest(world: Document, data: st.DataObject) -> None:
    settle(world, demands(data.draw, world))


@examples(150)
@given(worlds(forest=False, nodes=2), st.data())
def test_nobody_gives_what_he_does_not_have_to(world: Document, data: st.DataObject) -> None:
    """Each that is given back goes to a model that then starts, and no more go than that takes."""
    spread(world, demands(data.draw, world))
    plan = plan_json(world)
    owner = {replica["name"]: replica["model"] for replica in world["replicas"]}
    modes = {m["name"]: m.get("mode", "auto") for m in world["models"]}
    given: dict[str, list[Any]] = {}
    for action in plan["actions"]:
        if action["reason"] in ("reclaimed", "over_limit"):
            assert modes[owner[action["replica"]]] == "auto"
        if action["reason"] == "reclaimed":
            assert modes[action["for"]] in ("auto", "add_only")
            given.setdefault(action["for"], []).append(action)
    after = step(world, plan, 15, 15, 15)
    again = plan_json(after)
    for asker in given:
        gets = [a for a in again["actions"] if a["op"] == "start" and a["model"] == asker]
        assert gets, (asker, plan["actions"], again)
