"""Properties of one plan, over whole snapshots (reconciler.md, Properties 1, 2, 10)."""

import json
from copy import deepcopy

from hypothesis import example, given
from hypothesis import strategies as st

from capacity.domain import plan_json
from capacity.tests.plan_checker import violations
from capacity.tests.plan_removals import rest_is_under, survivors_are_under
from capacity.tests.snapshot_facts import read_models
from capacity.tests.strategies import Document, busy_snapshots, calm_snapshots, examples, moment, snapshots


def assert_sound(snapshot: Document) -> None:
    found = violations(snapshot, plan_json(snapshot))
    assert not found, "\n".join([*found, json.dumps(snapshot)])


@examples(150)
@given(snapshots())
def test_no_plan_breaks_a_limit_a_bound_a_node_or_a_class_and_each_hold_has_its_reason(snapshot: Document) -> None:
    assert_sound(snapshot)


def one_model(replicas: list[Document], **model: object) -> Document:
    rows = [{"model": "m", "profile": "p", "nodes": ["n"], "state": "ready", "since": moment(20)} | r for r in replicas]
    return {
        "format": "llmgw.snapshot/1", "at": moment(0), "nodes": [{"name": "n", "resources": {"gpu": 9}}],
        "models": [{"name": "m"} | model],
        "profiles": [{"model": "m", "name": "p", "resource": "gpu", "units": 1}],
        "measurements": [{"model": "m", "profile": "p", "max_concurrency": 10, "tokens_per_second": 300}], "replicas": rows,
    }  # fmt: skip


SURVIVOR_AT_ITS_EDGE = one_model([{"name": f"r{i}", "in_flight": load} for i, load in enumerate((6, 2, 2))])
LAST_IS_NOT_REMOVABLE = one_model([{"name": "r", "in_flight": 0, "removable": False}], min_replicas=0, scale_to_zero=True)


@examples(150)
@given(calm_snapshots())
@example(SURVIVOR_AT_ITS_EDGE)
@example(LAST_IS_NOT_REMOVABLE)
def test_no_removal_breaks_a_rule(snapshot: Document) -> None:
    assert_sound(snapshot)


@examples(200)
@given(busy_snapshots())
def test_no_start_and_no_undrain_breaks_a_rule_where_models_compete(snapshot: Document) -> None:
    assert_sound(snapshot)


@examples(100)
@given(snapshots(max_models=1, null_list=st.just("")))
def test_no_plan_for_one_model_breaks_a_rule(snapshot: Document) -> None:
    assert_sound(snapshot)


@examples(80)
@given(busy_snapshots(max_models=4, guarantees=True))
def test_guarantees_break_no_limit_and_no_room(snapshot: Document) -> None:
    assert_sound(snapshot)


@examples(120)
@given(calm_snapshots())
def test_no_voluntary_removal_leaves_the_total_or_a_survivor_at_or_over_the_threshold(snapshot: Document) -> None:
    models, replicas = read_models(snapshot), {r["name"]: r for r in snapshot["replicas"]}
    for action in plan_json(snapshot)["actions"]:
        if action["reason"] != "rest_under_threshold":
            continue
        victim = replicas[action["replica"]]
        model = models[victim["model"]]
        assert rest_is_under(model, victim)
        assert survivors_are_under(model, victim, those_that_count_nothing=False)


@examples(60)
@given(snapshots())
def test_planning_changes_nothing_of_the_snapshot_and_answers_the_same_twice(snapshot: Document) -> None:
    before = deepcopy(snapshot)
    assert plan_json(snapshot) == plan_json(snapshot)
    assert snapshot == before
