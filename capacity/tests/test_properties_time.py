"""Properties of many passes one after the other (reconciler.md, Properties 5 and 11)."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from capacity.domain import plan_json
from capacity.tests.fleet_simulation import spread, step
from capacity.tests.snapshot_facts import read_models
from capacity.tests.strategies import Document, examples, moment, often

PASS_SECONDS = 15


@st.composite
def fleets(draw: st.DrawFn, *, lowest_minimum: int = 0) -> Document:
    """One or two models on mixed hardware with `lowest_minimum` or more replicas ready; a window of two passes."""
    names = [f"m{i}" for i in range(draw(st.integers(1, 2)))]
    document: Document = {
        "format": "llmgw.snapshot/1", "at": moment(0), "nodes": draw(hardware()), "models": [], "profiles": [],
        "measurements": [], "replicas": [], "settings": {"down_window_seconds": 30, "idle_seconds": 60, "wake_seconds": 45},
        "scopes": [{"name": "s0", "parents": []}], "quotas": [{"scope": "s0", "target": "gpu", "limit": draw(st.integers(2, 9))}],
    }  # fmt: skip
    for name in names:
        low = draw(st.integers(lowest_minimum, 2))
        row: dict[str, Any] = {"name": name, "min_replicas": low, "max_replicas": draw(st.sampled_from([None, low + 2, low + 5]))}
        row |= {"scale_to_zero": draw(st.booleans()), "scope": "s0", "priority": draw(st.integers(0, 1))}
        document["models"].append(row)
        for resource in draw(st.lists(st.sampled_from(["gpu/a", "gpu/b"]), min_size=1, max_size=2, unique=True)):
            add_profile(draw, document, name, resource, low)
    return document


@st.composite
def hardware(draw: st.DrawFn) -> list[Document]:
    rows = [{"name": f"n{i}", "resources": {r: draw(st.integers(1, 5))}} for i, r in enumerate(["gpu/a", "gpu/b"])]
    if draw(often(False, True)):
        rows.append({"name": "n2", "resources": {"gpu/a": 3}, "schedulable": False})
    return rows


def add_profile(draw: st.DrawFn, document: Document, model: str, resource: str, running: int) -> None:
    profile = f"p-{resource[-1]}"
    document["profiles"].append({"model": model, "name": profile, "resource": resource, "units": draw(st.integers(1, 2))})
    if draw(often(True, False)):
        measured = {"max_concurrency": draw(st.sampled_from([1, 2, 3, 4, 10])), "tokens_per_second": draw(st.integers(1, 3))}
        status = draw(often("current", "stale", "assumed"))
        document["measurements"].append({"model": model, "profile": profile, "status": status} | measured)
    places = [n["name"] for n in document["nodes"] if resource in n["resources"]]
    for i in range(draw(st.integers(max(1, running), 4))):
        replica = {"name": f"{model}-{profile}-{i}", "model": model, "profile": profile, "state": "ready", "since": moment(900)}
        document["replicas"].append(replica | {"nodes": [draw(st.sampled_from(places))]})


@examples(12)
@given(fleets(), st.data())
def test_constant_demand_reaches_a_fixed_point_and_stays_there_for_100_passes(fleet: Document, data: st.DataObject) -> None:
    demand = {m["name"]: data.draw(st.integers(0, 25)) for m in fleet["models"]}
    starts_take, drains_take = data.draw(st.sampled_from([15, 45])), data.draw(st.sampled_from([15, 45]))
    quiet, passes = 0, 0
    while quiet < 100:
        spread(fleet, demand)
        plan = plan_json(fleet)
        quiet = 0 if plan["actions"] else quiet + 1
        fleet = step(fleet, plan, PASS_SECONDS, starts_take, drains_take)
        passes += 1
        assert passes < 300, f"still acting after {passes} passes: {plan['actions']}"


@examples(40)
@given(fleets(lowest_minimum=1), st.data())
def test_with_a_minimum_of_one_no_sequence_reaches_zero(fleet: Document, data: st.DataObject) -> None:
    for _ in range(25):
        spread(fleet, {m["name"]: data.draw(st.sampled_from([0, 0, 1, 5, 30])) for m in fleet["models"]})
        lose_something(data, fleet)
        plan = plan_json(fleet)
        fleet = step(fleet, plan, data.draw(st.sampled_from([15, 60])), starts_take=45, drains_take=30)
        for name, model in read_models(fleet).items():
            assert model.live_count >= 1, f"{name} has nothing left after {plan['actions']}"
            assert len(model.ready) >= 1, f"{name} has nothing ready after {plan['actions']}"


def lose_something(data: st.DataObject, fleet: Document) -> None:
    """A sample is lost, a node is cordoned or comes back, an owner changes a bound."""
    what = data.draw(often("", "load", "held", "cordon", "bound", weight=4))
    if what == "load" and fleet["replicas"]:
        data.draw(st.sampled_from(fleet["replicas"]))["in_flight"] = None
    elif what == "held":
        fleet["models"][0]["held_requests"] = None
    elif what == "cordon":
        node = data.draw(st.sampled_from(fleet["nodes"]))
        node["schedulable"] = not node.get("schedulable", True)
    elif what == "bound":
        model = data.draw(st.sampled_from(fleet["models"]))
        model |= {"min_replicas": 1, "max_replicas": data.draw(st.sampled_from([None, 1, 2]))}


@examples(25)
@given(fleets(), st.data())
def test_sweeps_outdated_replicas_and_cordons_together_reach_a_fixed_point(fleet: Document, data: st.DataObject) -> None:
    """A sweep's replica is its own for two passes, then stays where its model acts and else goes back."""
    demand = {m["name"]: data.draw(st.integers(0, 25)) for m in fleet["models"]}
    for model in fleet["models"]:
        model["mode"] = data.draw(often("auto", "add_only", "advise", "paused", weight=4))
    for row in fleet["profiles"]:
        row |= {"measure": data.draw(often(False, True)), "state": data.draw(often("active", "retire", "no_new"))}
    for replica in fleet["replicas"]:
        replica |= {"outdated": data.draw(often(False, True, weight=2)), "under_test": data.draw(often(False, True))}
    quiet, passes = 0, 0
    while quiet < 40:
        spread_over_the_rest(fleet, demand)
        plan = plan_json(fleet)
        refuse_what_touches_a_sweep(fleet, plan)
        acts = [action for action in plan["actions"] if not action.get("advice")]
        quiet = 0 if acts else quiet + 1
        fleet = after_sweeps(step(fleet, plan, PASS_SECONDS, 15, 30), plan, ends=passes % 3 == 2)
        passes += 1
        assert passes < 250, f"still acting after {passes} passes: {acts}"


def spread_over_the_rest(fleet: Document, demand: dict[str, int]) -> None:
    """A replica under test gets nothing of its model's requests."""
    tested = [r for r in fleet["replicas"] if r.get("under_test")]
    fleet["replicas"] = [r for r in fleet["replicas"] if not r.get("under_test")]
    spread(fleet, demand)
    fleet["replicas"] += [r | {"in_flight": 40} for r in tested]


def refuse_what_touches_a_sweep(fleet: Document, plan: Document) -> None:
    rows = {r["name"]: r for r in fleet["replicas"]}
    for action in plan["actions"]:
        row = rows.get(action.get("replica"), {})
        assert not row.get("under_test"), action
        assert not (action["op"] == "undrain" and row.get("outdated")), action


def after_sweeps(fleet: Document, plan: Document, *, ends: bool) -> Document:
    """What was started for a sweep is under test; where sweeps end, none is any more."""
    acts = {m["name"]: m["mode"] == "auto" for m in fleet["models"]}
    begun = [(a["model"], a["profile"]) for a in plan["actions"] if a["reason"] == "measure" and a["op"] == "start"]
    new = {f"new-{plan['at']}-{number}" for number, a in enumerate(plan["actions"]) if a["reason"] == "measure"}
    for replica in fleet["replicas"]:
        if replica["name"] in new:
            replica |= {"under_test": True, "give_back": True}
        elif ends and replica.get("under_test"):
            replica |= {"under_test": False, "give_back": replica.get("give_back", False) and not acts[replica["model"]]}
    for row in fleet["profiles"]:
        row["measure"] = row.get("measure", False) and (row["model"], row["name"]) not in begun
    return fleet
