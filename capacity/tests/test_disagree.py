"""Gateway and engine disagree: the larger counts, it is told, and once it has lasted for a window nothing is taken back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.domain.disagree import differ
from capacity.models import LanguageModel, Pass
from capacity.ports import Sample
from capacity.sources.gateway import Push, combine
from capacity.tests.fleet import START, Fleet

COUNTS = st.integers(0, 10**12)


@pytest.mark.parametrize(
    ("gateways", "engine", "found"),
    [(0, 0, False), (2, 0, False), (3, 0, True), (0, 3, True), (9, 12, False), (9, 13, True), (100, 76, False), (100, 74, True)],
)
def test_more_than_two_and_more_than_a_quarter_of_the_larger_is_too_far_apart(gateways, engine, found):
    assert differ(gateways, engine) is found


@given(COUNTS, COUNTS)
def test_it_is_the_same_from_both_sides_and_never_of_equal_counts(gateways, engine):
    assert differ(gateways, engine) == differ(engine, gateways)
    assert not differ(gateways, gateways)


@pytest.mark.parametrize(
    ("rule", "gateway_age", "engine_age", "engine", "found"),
    [
        ("both fresh", 1, 1, 9, (3, 9)),
        ("the gateway is silent", 50, 1, 9, None),
        ("the engine's count is old", 1, 50, 9, None),
        ("the engine does not say", 1, 1, None, None),
        ("they agree", 1, 1, 4, None),
    ],
)
def test_only_two_fresh_and_whole_counts_can_disagree(rule, gateway_age, engine_age, engine, found):
    push = Push(source="g", at=START - timedelta(seconds=gateway_age), replicas={"r": 3})
    sample = Sample(in_flight=engine, sampled_at=START - timedelta(seconds=engine_age))
    told = combine([push], {"r": sample}, START, 45).disagreements
    assert [(one.gateways, one.engine) for one in told.values()] == ([found] if found else [])


def test_a_source_that_is_missed_makes_the_sum_no_count_to_disagree_with():
    live = Push(source="g", at=START, replicas={"r": 3})
    silent = Push(source="h", at=START - timedelta(seconds=60), replicas={"r": 9})
    assert combine([live, silent], {"r": Sample(in_flight=12, sampled_at=START)}, START, 45).disagreements == {}


pytestmark = pytest.mark.django_db


def told() -> list[str]:
    return [f"{row['subject']} {row['detail']}" for row in Pass.objects.latest("id").problems if row["code"] == "disagree"]


@pytest.fixture
def fleet():
    """Three idle replicas that are one too many; the window is 30 s."""
    made = Fleet(min_replicas=1)
    LanguageModel.objects.update(min_replicas=3)
    made.a_pass()
    made.passes(1)
    return made


def say(fleet: Fleet, count: int) -> str:
    """The gateway counts so many on the first replica, and its engine none."""
    name = fleet.names("ready")[0]
    fleet.fake.advance(15)
    fleet.pushes.pushes = (Push(source="g", at=fleet.fake.now(), replicas={name: count}),)
    fleet.a_pass()
    return name


def model() -> LanguageModel:
    return LanguageModel.objects.get()


def test_it_is_told_when_it_is_found_again_with_replica_and_both_numbers(fleet):
    name = say(fleet, 3)
    assert told() == []
    assert model().disagree_since == fleet.fake.now()
    say(fleet, 4)
    assert told() == [f"replica:{name} {name}: gateways 4, engine 0 in flight: the larger counts."]


def test_once_it_has_lasted_for_a_window_nothing_is_taken_back_until_they_agree(fleet):
    for _ in range(3):
        say(fleet, 3)
    since = model().disagree_since
    LanguageModel.objects.update(min_replicas=1)
    for _ in range(6):
        say(fleet, 3)
    assert len(fleet.names("ready")) == 3
    assert model().last_decision.reason == "metrics_unknown"
    assert model().disagree_since == since
    assert "nothing is taken back until they agree" in told()[0]
    for _ in range(6):
        say(fleet, 0)
    assert model().disagree_since is None
    assert told() == []
    assert len(fleet.names("ready")) < 3


def test_what_cannot_be_read_neither_ends_nor_begins_it(fleet):
    say(fleet, 3)
    since = model().disagree_since
    fleet.pushes.away = True
    fleet.passes(1)
    assert model().disagree_since == since
