"""Properties of the brake over any plan, any past and any release."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from capacity.domain import parse_snapshot
from capacity.domain import plan as make_plan
from capacity.domain.brake import Bounds, Event, Manual, Release, Situation, Together, judge, release_of
from capacity.domain.types import Action

from .plan_ledger import Ledger
from .strategies import Document, busy_snapshots, examples

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MODELS = ("a", "b")
REASONS = ("below_min", "over_capacity", "start_timeout", "rest_under_threshold", "above_max")
SIZES = {("a", "p"): ("gpu", 1), ("b", "p"): ("gpu", 3)}
small = st.integers(0, 6)
by_model = st.dictionaries(st.sampled_from(MODELS), small)


@st.composite
def actions(draw: st.DrawFn) -> list[Action]:
    kinds = draw(
        st.lists(
            st.tuples(
                st.sampled_from(("start", "drain", "cancel", "undrain")), st.sampled_from(MODELS), st.sampled_from(REASONS)
            ),
            max_size=14,
        )
    )
    return [
        Action(
            op=op,  # type: ignore[arg-type]
            model=model,
            reason=reason,
            profile="p",
            nodes=(f"n{number}",) if op == "start" else (),
            replica=None if op == "start" else f"r{number}",
        )
        for number, (op, model, reason) in enumerate(kinds)
    ]


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    release = Release(
        until=NOW + timedelta(seconds=draw(st.integers(-5, 5))),
        stops=draw(by_model),
        starts=draw(by_model),
        unready=draw(st.frozensets(st.sampled_from(MODELS))),
    )
    events = draw(
        st.lists(
            st.builds(
                Event,
                at=st.integers(-700, 700).map(lambda ago: NOW - timedelta(seconds=ago)),
                kind=st.sampled_from(("stop", "start", "replacement", "death")),
                model=st.sampled_from(MODELS),
                count=small,
                resource=st.just("gpu"),
                units=small,
                is_released=st.booleans(),
            ),
            max_size=4,
        )
    )
    return Situation(
        ready=draw(st.integers(0, 60)),
        units={"gpu": draw(st.integers(0, 60))},
        sizes=SIZES,
        unready=frozenset(f"r{number}" for number in draw(st.sets(st.integers(0, 13)))),
        together={model: Together(count=2, of=3) for model in draw(st.sets(st.sampled_from(MODELS)))},
        replaceable=draw(by_model),
        events=events,
        release=draw(st.sampled_from((None, release))),
    )


bounds = st.builds(Bounds, stops=small, stop_percent=st.integers(0, 100), starts=small, start_percent=st.integers(0, 100))


@given(actions(), situations(), bounds)
@examples(300)
def test_every_action_is_done_or_withheld_in_the_plans_order(plan, situation, bound):
    verdict = judge(plan, situation, bound, NOW)
    held = [found.action for found in verdict.withheld]
    assert [action for action in plan if action in held] == held
    assert [action for action in plan if action not in held] == list(verdict.done)


@given(actions(), situations(), bounds)
@examples(300)
def test_never_more_stops_pass_than_the_bound_and_the_release_allow(plan, situation, bound):
    verdict = judge(plan, situation, bound, NOW)
    stops = sum(event.count for event in verdict.events if event.kind == "stop" and not event.is_released)
    past = sum(
        event.count
        for event in situation.events
        if event.kind == "stop" and not event.is_released and abs(NOW - event.at) < timedelta(seconds=600)
    )
    assert stops <= max(0, max(bound.stops, situation.ready * bound.stop_percent // 100) - past)
    done = sum(1 for action in verdict.done if action.op in {"drain", "cancel"})
    assert done == sum(event.count for event in verdict.events if event.kind == "stop")


@given(actions(), situations(), bounds)
@examples(200)
def test_a_pulled_brake_does_nothing_and_undrains_are_withheld_by_nothing_else(plan, situation, bound):
    assert judge(plan, replace(situation, manual=Manual()), bound, NOW).done == ()
    assert not [found for found in judge(plan, situation, bound, NOW).withheld if found.action.op == "undrain"]


@given(actions(), situations(), bounds, st.booleans())
@examples(300)
def test_what_is_released_is_done_and_nothing_beyond_it(plan, situation, bound, pulled):
    situation = replace(situation, release=None, manual=Manual() if pulled else None)
    first = judge(plan, situation, bound, NOW)
    release = release_of(first.withheld, NOW + timedelta(seconds=600))
    later = replace(situation, events=[*situation.events, *first.events], release=release, manual=None)
    assert judge([found.action for found in first.withheld], later, bound, NOW).withheld == ()


@given(actions(), situations(), bounds, st.integers(0, 3))
@examples(200)
def test_wider_bounds_never_let_through_less(plan, situation, bound, more):
    wider = replace(bound, stops=bound.stops + more, starts=bound.starts + more)
    assert set(judge(plan, situation, bound, NOW).done) <= set(judge(plan, situation, wider, NOW).done)


@given(actions(), situations(), bounds)
@examples(200)
def test_no_unready_replica_of_a_model_that_turned_together_goes_for_it_without_a_release(plan, situation, bound):
    verdict = judge(plan, replace(situation, release=None), bound, NOW)
    for action in verdict.done:
        stops = action.op in {"drain", "cancel"} and action.reason in {"start_timeout", "rest_under_threshold", "idle"}
        assert not (stops and action.replica in situation.unready and action.model in situation.together)


def sizes(snapshot: Document) -> dict[tuple[str, str], tuple[str, int]]:
    rows = snapshot.get("profiles") or []
    return {(row["model"], row["name"]): (row["resource"], row["units"] * row.get("hosts", 1)) for row in rows}


@given(busy_snapshots(guarantees=True), situations(), bounds)
@examples(150)
def test_what_passes_of_any_plan_breaks_no_limit_and_fits_although_the_rest_of_it_is_withheld(snapshot, situation, bound):
    planned = [action for action in make_plan(parse_snapshot(snapshot)).actions if not action.advice]
    verdict = judge(planned, replace(situation, sizes=sizes(snapshot), release=None), bound, NOW)
    ledger = Ledger(snapshot)
    for action in verdict.done:
        if action.op == "start":
            model, profile = ledger.models[action.model], ledger.models[action.model].profiles[action.profile]
            assert ledger.stopped_by(model, profile) is None
            assert all(ledger.free(node, profile.resource) >= profile.units for node in action.nodes)
            ledger.start(action.model, action.profile, action.nodes)
