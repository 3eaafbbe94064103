"""The scorecard: what the plan would have done over a recorded load, beside what ran."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.domain.scorecard import Setup, Step, Worst, covered_seconds, scorecard
from capacity.domain.types import Measurement, Model, Node, Profile, Settings, Snapshot
from quotas.domain.types import Quota, Scope

START = datetime(2026, 11, 1, tzinfo=UTC)


def setup(running=1, *, units=100, start_seconds=60, profiles=None, quotas=(), scopes=(), settings=None, **model):
    rows = profiles or (Profile(model="m", name="p", resource="sim", units=2),)
    snapshot = Snapshot(
        at=START,
        settings=settings or Settings(),
        nodes=(Node(name="n1", resources={"sim": units}),),
        models=(Model(name="m", **model),),
        profiles=rows,
        measurements=tuple(
            Measurement(model="m", profile=row.name, max_concurrency=10, tokens_per_second=Fraction(100)) for row in rows
        ),
        scopes=scopes,
        quotas=quotas,
    )
    return Setup(snapshot=snapshot, running=[("p", ("n1",))] * running, start_seconds=start_seconds)


def record(*demands, capacity=10, held=1):
    """A step of five minutes a demand; None was not recorded."""
    return [
        Step(
            at=START + timedelta(minutes=5 * number),
            seconds=300,
            demand=demand,
            demand_high=demand,
            capacity=capacity,
            held=held,
            units={"sim": 2 * held},
        )
        for number, demand in enumerate(demands)
        if demand is not None
    ]


def test_no_record_gives_an_empty_card():
    card = scorecard([], setup())
    assert (card.covered_seconds, card.covered_days, card.kept.adds, card.kept.worst, card.ran.worst) == (0, 0.0, 0, None, None)
    assert card.kept.unit_hours == {}


def test_a_load_that_fits_changes_nothing_and_is_paid_for_by_the_hour():
    card = scorecard(record(*[5] * 12), setup())
    assert (card.kept.adds, card.kept.removals, card.kept.short_seconds) == (0, 0, 0)
    assert card.kept.unit_hours == card.ran.unit_hours == {"sim": 2.0}


def test_a_rise_adds_as_many_as_are_missing_and_is_short_until_they_are_ready():
    card = scorecard(record(5, 35, 35, 35), setup())
    assert (card.kept.adds, card.kept.removals, card.kept.short_seconds) == (3, 0, 300)
    assert card.kept.worst == Worst(at=START + timedelta(minutes=5), demand=35, capacity=10)
    assert card.ran.short_seconds == 900


def test_starts_that_take_longer_leave_it_short_for_longer():
    card = scorecard(record(5, 35, 35, 35), setup(start_seconds=600))
    assert card.kept.short_seconds == 600


def test_what_ran_and_was_idle_would_have_been_taken_back_one_a_window():
    card = scorecard(record(*[1] * 12, capacity=40, held=4), setup(running=4))
    assert (card.kept.adds, card.kept.removals) == (0, 3)
    assert card.kept.unit_hours["sim"] < card.ran.unit_hours["sim"] == 8.0


def test_the_models_own_window_is_kept():
    card = scorecard(record(*[1] * 12, capacity=40, held=4), setup(running=4, down_window_seconds=3600))
    assert card.kept.removals == 0


def test_a_window_longer_than_a_calendar_keeps_what_runs():
    card = scorecard(record(*[15] * 3, *[1] * 30), setup(2, down_window_seconds=10**12))
    assert card.kept.removals == 0


def test_the_worst_step_is_the_first_of_the_largest_shortfall():
    card = scorecard(record(12, 15, 15, 11), setup(max_replicas=1))
    assert card.kept.worst == Worst(at=START + timedelta(minutes=5), demand=15, capacity=10)
    assert card.kept.short_seconds == 1200


@pytest.mark.parametrize(
    ("arguments", "adds"),
    [
        pytest.param({}, 4, id="free"),
        pytest.param({"max_replicas": 3}, 2, id="its maximum"),
        pytest.param({"units": 4}, 1, id="the pool's room"),
        pytest.param(
            {
                "scope": "acme",
                "scopes": (Scope(name="acme"),),
                "quotas": (Quota(scope="acme", target="sim", limit=6),),
            },
            2,
            id="a limit of its scope",
        ),
    ],
)
def test_what_binds_the_plan_binds_the_card(arguments, adds):
    assert scorecard(record(*[50] * 6), setup(**arguments)).kept.adds == adds


def test_a_model_that_may_sleep_sleeps_and_is_woken():
    card = scorecard(record(0, 0, 0, 0, 0, 3, 3), setup(min_replicas=0, scale_to_zero=True))
    assert (card.kept.removals, card.kept.adds) == (1, 1)
    assert card.kept.worst == Worst(at=START + timedelta(minutes=25), demand=3, capacity=0)


def test_a_gap_is_not_covered_and_the_window_begins_anew_after_it():
    idle = [1, None, 1, None, 1, None, 1, None]
    card = scorecard(record(*idle, capacity=40, held=4), setup(running=4))
    assert card.covered_seconds == 4 * 300
    assert card.kept.removals == 0


def test_changes_of_what_ran_are_its_adds_and_removals():
    steps = record(5, held=1) + record(None, 5, held=4) + record(None, None, 5, held=2)
    card = scorecard(steps, setup())
    assert (card.ran.adds, card.ran.removals) == (3, 2)


def test_the_mode_of_today_does_not_matter():
    loads = record(5, 35, 1, 1, 1, 1)
    assert (
        scorecard(loads, setup(mode="advise")) == scorecard(loads, setup(mode="auto")) == scorecard(loads, setup(mode="paused"))
    )


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(0, 4), st.integers(0, 900))
def test_cards_add_up(demands, running, start_seconds):
    steps = record(*demands)
    card = scorecard(steps, setup(running=running, start_seconds=start_seconds, max_replicas=8))
    assert card == scorecard(steps, setup(running=running, start_seconds=start_seconds, max_replicas=8))
    assert card.covered_seconds == covered_seconds(steps) >= card.kept.short_seconds >= 0
    assert running + card.kept.adds - card.kept.removals >= (1 if steps else 0)
    assert (card.kept.worst is None) == (card.kept.short_seconds == 0)
