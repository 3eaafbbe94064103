"""Replicas under test are out of the plan's hands, and sweeps get a replica of their own where nobody else needs the room."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.domain import parse_snapshot, plan_json
from capacity.domain.plan import plan
from capacity.tests.builders import actions, answer, fleet, hold, model, node, profile, ready, replica
from capacity.tests.plan_ledger import Ledger
from capacity.tests.strategies import busy_snapshots, calm_snapshots, examples, often, snapshots

TEST = {"under_test": True}
BACK = {"give_back": True}
ASKED = profile("p", measure=True)


def row_of(name: str, state: str, load: int | None, **more: Any) -> dict[str, Any]:
    return replica(name, state=state, in_flight=load, since="2026-01-01T11:00:00Z", **more)


loads = st.integers(0, 12) | st.none()
states = st.sampled_from(["ready", "ready", "ready", "starting", "unready", "draining"])


@given(st.lists(st.tuples(states, loads, st.booleans()), max_size=8), st.sampled_from([None, 3, 9]), st.integers(0, 3))
@examples(60)
def test_a_plan_is_that_of_a_fleet_without_those_under_test_and_without_their_room(
    drawn: list[tuple[str, int | None, bool]], most: int | None, least: int
) -> None:
    rows = [row_of(f"r{number}", state, load, under_test=tested) for number, (state, load, tested) in enumerate(drawn)]
    tested = sum(row["under_test"] for row in rows)
    wide = most if most is None else most + len(rows)
    with_them = fleet(rows, units=20, models=[model(min_replicas=least, max_replicas=wide)])
    without = deepcopy(with_them)
    without["replicas"] = [row for row in rows if not row["under_test"]]
    without["nodes"][0]["resources"] = {name: units - tested for name, units in without["nodes"][0]["resources"].items()}
    without["models"][0]["max_replicas"] = None if wide is None else wide - tested
    found, expected = plan_json(with_them), plan_json(without)
    assert found["actions"] == expected["actions"]
    for one, other in zip(found["decisions"], expected["decisions"], strict=True):
        if most is None:  # a maximum is named with its number
            same = {key: value for key, value in one.items() if key not in {"why", "reason"}}
            assert same == {key: value for key, value in other.items() if key not in {"why", "reason"}}
    assert not {row["name"] for row in rows if row["under_test"]} & {action.get("replica") for action in found["actions"]}


def test_its_load_is_no_demand_and_it_serves_nobody() -> None:
    rows = [replica("a", in_flight=4), replica("t", in_flight=500, **TEST)]
    assert actions(fleet(rows)) == []
    assert actions(fleet([replica("t", in_flight=5, **TEST)])) == [("start", "p@n1", "below_min")]


def test_it_holds_its_room_and_its_place_under_the_maximum() -> None:
    assert answer(fleet([replica("t", **TEST)], nodes=[node(units=1)])) == hold("no_room")
    assert answer(fleet([replica("t", **TEST)], chat={"max_replicas": 1})) == hold("at_max")


@pytest.mark.parametrize("mode", ["auto", "add_only", "advise", "paused"])
def test_a_sweep_gets_a_replica_of_its_own_whatever_the_mode(mode: str) -> None:
    document = fleet(ready(3), profiles=[ASKED], chat={"mode": mode})
    assert actions(document) == [("start", "p@n1", "measure")]
    assert not plan_json(document)["actions"][0].get("advice")
    assert answer(document) == ("add", "measure", 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes": [node(units=1)]}, "no node has the room"),
        ({"chat": {"max_replicas": 1}}, "maximum is reached"),
        ({"profiles": [profile("p", measure=True, state="no_new")]}, "takes no new replicas"),
        ({"quotas": None}, "could not be read"),
        ({"replicas": None}, "could not be read"),
    ],
)
def test_a_sweep_that_gets_none_is_told_why(change: dict[str, Any], words: str) -> None:
    document = {**fleet(ready(3), profiles=[ASKED]), **{key: value for key, value in change.items() if key != "chat"}}
    document["models"][0].update(change.get("chat", {}))
    found = plan(parse_snapshot(document))
    assert [row.profile for row in found.waiting] == ["p"]
    assert words in found.waiting[0].why
    assert found.actions == ()


def test_those_who_need_the_room_come_first_and_those_who_are_only_advised_after() -> None:
    both = [model("busy"), model("chat")]
    profiles = [profile(model="busy"), ASKED]
    document = fleet(ready(3), models=both, profiles=profiles, nodes=[node(units=2)])
    assert actions(document) == [("start", "p@n1", "below_min")]
    document["models"][0]["mode"] = "advise"
    assert actions(document) == [("start", "p@n1", "measure")]


@pytest.mark.parametrize("mode", ["add_only", "advise", "paused"])
@pytest.mark.parametrize(("state", "op"), [("ready", "drain"), ("unready", "drain"), ("starting", "cancel")])
def test_after_its_sweep_it_is_drained_where_the_model_takes_nothing_back(mode: str, state: str, op: str) -> None:
    document = fleet([*ready(3), row_of("own", state, 0, **BACK)], chat={"mode": mode})
    assert actions(document) == [(op, "own", "measure")]
    assert answer(document) == ("remove", "measure", 1)


def test_after_its_sweep_it_is_an_ordinary_replica_of_a_model_in_auto() -> None:
    assert actions(fleet([replica("a", in_flight=9), row_of("own", "ready", 9, **BACK)])) == []
    assert answer(fleet([replica("a", in_flight=1), row_of("own", "ready", 0, **BACK)])) == ("remove", "rest_under_threshold", 1)


@st.composite
def sweeping(draw: st.DrawFn) -> dict[str, Any]:
    """Whole snapshots in which sweeps wait, run and are over, among outdated replicas and models that compete."""
    document: dict[str, Any] = draw(st.one_of(snapshots(), calm_snapshots(), busy_snapshots(guarantees=True)))
    for row in document["replicas"] or []:
        row |= {flag: True for flag in ("under_test", "give_back", "outdated") if draw(often(False, True, weight=3))}
    for row in document["profiles"]:
        row["measure"] = draw(often(False, True, weight=2))
    return document


@given(sweeping())
@examples(25)
def test_no_start_for_a_sweep_breaks_a_limit_and_nothing_is_done_to_a_replica_twice_or_under_test(
    document: dict[str, Any],
) -> None:
    ledger, rows = Ledger(document), {row["name"]: row for row in document["replicas"] or []}
    done: set[str] = set()
    for action in plan_json(document)["actions"]:
        if action["op"] != "start":
            row = rows[action["replica"]]
            assert not row.get("under_test") and row["name"] not in done, action
            assert action["op"] != "undrain" or not row.get("outdated"), action
            done.add(row["name"])
            continue
        one = ledger.models[action["model"]]
        wanted = one.profiles[action["profile"]]
        held = sum(holder is one for holder, _ in ledger.holdings)
        assert not ledger.over(one, wanted, 1) and (one.maximum is None or held < one.maximum), action
        assert wanted.active and set(ledger.best_fit(wanted) or ()) == set(action["nodes"]), action
        ledger.start(action["model"], action["profile"], action["nodes"])
