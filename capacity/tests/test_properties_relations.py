"""Properties of two plans, for a snapshot and a change of it (reconciler.md, Properties 3, 4, 6, 7, 8, 9)."""

from copy import deepcopy
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from capacity.domain import plan_json
from capacity.tests.fleet_simulation import apply
from capacity.tests.snapshot_facts import read_models, sample
from capacity.tests.strategies import NONSENSE, Document, busy_snapshots, calm_snapshots, examples, moment, often, snapshots

ROWS = ("nodes", "models", "profiles", "measurements", "replicas", "backoffs", "scopes", "quotas")
NOT_OF_DEMAND = {"reclaimed", "over_limit", "start_timeout", "evacuate"}
ANY_SNAPSHOT = st.one_of(snapshots(), calm_snapshots(), busy_snapshots())


def decisions_of(plan: Document) -> dict[str, Document]:
    return {d["model"]: d for d in plan["decisions"]}


def gained(snapshot: Document, plan: Document, model: str) -> int:
    """Replicas more (or fewer) that a plan makes of a model, what is not decided by its demand aside."""
    owner = {r["name"]: r["model"] for r in snapshot["replicas"]}
    own = [
        a for a in plan["actions"]
        if (a["model"] if a["op"] == "start" else owner[a["replica"]]) == model and a["reason"] not in NOT_OF_DEMAND
    ]  # fmt: skip
    return sum(1 if a["op"] in ("start", "undrain") else -1 for a in own)


def fungible(snapshot: Document) -> Document:
    """Room without corners: units of one, on any node."""
    for profile in snapshot["profiles"]:
        profile |= {"units": 1, "hosts": 1, "selector": {}}
    for replica in snapshot["replicas"]:
        replica["nodes"] = replica["nodes"][:1]
    return snapshot


@st.composite
def more_demand(draw: st.DrawFn, snapshot: Document) -> tuple[Document, str]:
    """The snapshot with one known sample of one model raised."""
    after = deepcopy(snapshot)
    model = draw(st.sampled_from(after["models"]))
    known = [(model, key) for key in ("held_requests", "demand_peak") if sample(model.get(key)) is not None]
    known += [(r, "in_flight") for r in after["replicas"] if r["model"] == model["name"] and sample(r["in_flight"]) is not None]
    if not known:
        model["held_requests"] = 0
        known = [(model, "held_requests")]
    row, key = draw(st.sampled_from(known))
    row[key] += draw(st.sampled_from([1, 2, 5, 20]))
    return after, model["name"]


@examples(150)
@given(st.one_of(busy_snapshots(max_models=1, max_profiles=3), calm_snapshots(max_models=1)), st.data())
def test_more_demand_of_a_model_never_means_fewer_replicas_of_it(snapshot: Document, data: st.DataObject) -> None:
    assume(sample(snapshot["models"][0].get("held_requests", 0)) is not None)
    after, model = data.draw(more_demand(snapshot))
    assert gained(after, plan_json(after), model) >= gained(snapshot, plan_json(snapshot), model)


@examples(100)
@given(busy_snapshots(max_profiles=1).map(fungible), st.data())
def test_more_demand_never_means_fewer_replicas_where_models_share_room(snapshot: Document, data: st.DataObject) -> None:
    assume(all(sample(m.get("held_requests", 0)) is not None for m in snapshot["models"]))
    after, model = data.draw(more_demand(snapshot))
    assert gained(after, plan_json(after), model) >= gained(snapshot, plan_json(snapshot), model)


@st.composite
def hidden_sample(draw: st.DrawFn, snapshot: Document) -> tuple[Document, str]:
    """The snapshot with one sample of one model lost, turned to nonsense or too old."""
    after = deepcopy(snapshot)
    model = draw(st.sampled_from(after["models"]))
    own = [r for r in after["replicas"] or [] if r["model"] == model["name"]]
    row = draw(st.sampled_from([model, *own]))
    if row is model:
        row[draw(st.sampled_from(["held_requests", "demand_peak"]))] = draw(st.sampled_from(NONSENSE))
    elif draw(st.booleans()):
        row["in_flight"] = draw(st.sampled_from([None, *NONSENSE]))
    else:
        row["sampled_at"] = moment(3600)
    return after, model["name"]


@examples(150)
@given(ANY_SNAPSHOT, st.data())
def test_hiding_a_sample_of_a_model_never_turns_its_hold_into_an_action(snapshot: Document, data: st.DataObject) -> None:
    after, model = data.draw(hidden_sample(snapshot))
    if decisions_of(plan_json(snapshot))[model]["outcome"] == "hold":
        assert decisions_of(plan_json(after))[model]["outcome"] == "hold"


@examples(100)
@given(st.one_of(snapshots(), calm_snapshots(), busy_snapshots(guarantees=True)), st.data())
def test_the_order_of_rows_changes_nothing(snapshot: Document, data: st.DataObject) -> None:
    shuffled: dict[str, Any] = deepcopy(snapshot)
    random = data.draw(st.randoms())
    for key in ROWS:
        if shuffled[key]:
            random.shuffle(shuffled[key])
    plan = plan_json(snapshot)
    assert plan_json(shuffled) == plan
    for replica in shuffled["replicas"] or []:
        random.shuffle(replica["nodes"])
    assert [plan_json(shuffled)[key] for key in ("actions", "decisions")] == [plan["actions"], plan["decisions"]]


@examples(150)
@given(ANY_SNAPSHOT)
def test_a_plan_applied_and_planned_again_adds_nothing_for_a_model_whose_need_was_met(snapshot: Document) -> None:
    first = plan_json(snapshot)
    after = apply(snapshot, first)
    second, models = plan_json(after), read_models(after)
    owner = {r["name"]: r["model"] for r in after["replicas"] or []}
    advised = {a["model"] if a["op"] == "start" else owner[a["replica"]] for a in first["actions"] if a.get("advice")}
    for action in second["actions"]:
        model = models[action["model"] if action["op"] == "start" else owner[action["replica"]]]
        if not action.get("advice") and model.name not in advised:
            assert model.need is not None, f"{action} for a model that is asked for nothing"
            assert action["op"] in ("start", "undrain")


@examples(120)
@given(ANY_SNAPSHOT, st.sampled_from([2, 3, 7, 1000]))
def test_all_loads_and_capacities_times_k_change_nothing(snapshot: Document, k: int) -> None:
    scaled = deepcopy(snapshot)
    samples = [(m, key) for m in scaled["models"] for key in ("held_requests", "demand_peak")]
    samples += [(r, "in_flight") for r in scaled["replicas"] or []]
    for row, key in samples:
        if sample(row.get(key)) is not None:
            row[key] *= k
    for row in scaled["measurements"] or []:
        row["max_concurrency"] *= k
    before, after = plan_json(snapshot), plan_json(scaled)
    assert after["actions"] == before["actions"]
    for old, new in zip(before["decisions"], after["decisions"], strict=True):
        for key in ("model", "outcome", "reason", "count", "limited_by"):
            assert new[key] == old[key]
        for key in ("demand_low", "demand_high", "capacity_ready", "capacity_starting"):
            assert new[key] == (None if old[key] is None else old[key] * k)


@st.composite
def others_changed(draw: st.DrawFn, snapshot: Document, kept: str) -> Document:
    """Every other model has other loads, bounds, priority and mode."""
    after = deepcopy(snapshot)
    for model in after["models"]:
        if model["name"] != kept:
            low = draw(st.integers(0, 3))
            model |= {"min_replicas": low, "max_replicas": draw(st.sampled_from([None, low, low + 3]))}
            model |= {"held_requests": draw(often(0, 9, 100, None)), "priority": draw(st.integers(-2, 2))}
            model["mode"] = draw(st.sampled_from(["auto", "advise", "add_only", "paused"]))
    for replica in after["replicas"] or []:
        if replica["model"] != kept:
            replica["in_flight"] = draw(st.sampled_from([0, 3, 30, None]))
    return after


def own_removals(snapshot: Document, plan: Document, model: str) -> list[Document]:
    owner = {r["name"]: r["model"] for r in snapshot["replicas"] or []}
    ends = [a for a in plan["actions"] if a["op"] in ("drain", "cancel") and owner[a["replica"]] == model]
    return [a for a in ends if a["reason"] not in ("reclaimed", "over_limit")]


@examples(100)
@given(ANY_SNAPSHOT, st.data())
def test_a_model_never_changes_the_removals_of_another(snapshot: Document, data: st.DataObject) -> None:
    model = data.draw(st.sampled_from([m["name"] for m in snapshot["models"]]))
    after = data.draw(others_changed(snapshot, model))
    assert own_removals(after, plan_json(after), model) == own_removals(snapshot, plan_json(snapshot), model)
