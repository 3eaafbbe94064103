"""Scorecards of a live pool: made of its rollups, and saying what the passes themselves would have done."""

from __future__ import annotations

from datetime import timedelta

import pytest

from capacity.briefings import mode_facts
from capacity.briefings.scorecards import card_of
from capacity.models import LanguageModel, Measurement, Replica, Rollup, Sample
from capacity.rollup import bucket_of, make_rollups, roll
from capacity.samples import pack
from capacity.tests.fleet import Fleet
from capacity.tests.rollups import remember

pytestmark = pytest.mark.django_db


def test_the_card_is_made_of_what_the_rollups_hold():
    fleet = Fleet(min_replicas=1, mode="advise")
    now = fleet.fake.now()
    replicas = [
        Replica.objects.create(
            name=f"r{number}", pool=fleet.pool, model=fleet.model, profile=fleet.profile, state="ready", nodes=["n1"]
        )
        for number in range(3)
    ]
    remember(fleet.model, [2] * 12, replicas=replicas, until=now)
    built, _ = mode_facts.advise(fleet.deps, fleet.lease, now)
    found = card_of(fleet.model, built, now)
    assert (found.card.covered_seconds, found.starts_seen, found.start_seconds) == (3600, 0, 300)
    assert found.card.ran.unit_hours == {"sim": 3.0}
    assert found.card.kept.removals == 2
    assert found.card.kept.unit_hours["sim"] < 3


def test_starts_that_were_seen_say_how_long_one_lasts():
    fleet = Fleet(min_replicas=1)
    now = fleet.fake.now()
    for number, seconds in enumerate((40, 60, 500)):
        Replica.objects.create(
            name=f"r{number}", pool=fleet.pool, model=fleet.model, profile=fleet.profile, created_at=now - timedelta(hours=1),
            ready_at=now - timedelta(hours=1) + timedelta(seconds=seconds), gone_at=now,
        )  # fmt: skip
    built, _ = mode_facts.advise(fleet.deps, fleet.lease, now)
    found = card_of(fleet.model, built, now)
    assert (found.starts_seen, found.start_seconds) == (3, 60)


def test_a_card_is_made_anew_when_what_it_is_made_of_changes():
    fleet = Fleet(min_replicas=1, mode="advise")
    now = fleet.fake.now()
    remember(fleet.model, [25] * 4, until=now)

    def adds():
        fleet.deps.measurements.expire()
        built, _ = mode_facts.advise(fleet.deps, fleet.lease, now)
        return card_of(fleet.model, built, now).card.kept.adds

    assert adds() == adds() == 3
    Measurement.objects.update(max_concurrency=5)
    assert adds() == 5
    LanguageModel.objects.update(max_replicas=2)
    assert adds() == 2
    Rollup.objects.all().delete()
    assert adds() == 0


def card(fleet):
    built, _ = mode_facts.advise(fleet.deps, fleet.lease, fleet.fake.now())
    return card_of(fleet.model, built, fleet.fake.now()).card


@pytest.mark.parametrize(
    "demands",
    [
        pytest.param((4, 4, 4), id="steady"),
        pytest.param((4, 35, 35, 35, 35), id="a rise that stays"),
        pytest.param((35, 35, 3, 3, 3, 3, 3, 3, 3), id="a fall"),
        pytest.param((4, 25, 15, 15, 40, 15, 15, 15), id="up and down"),
    ],
)
def test_a_model_in_auto_did_what_its_card_says_it_would_have_done(demands):
    """Each demand lasts for five minutes of passes."""
    fleet = Fleet(min_replicas=1, settings={"down_window_seconds": 300})
    fleet.a_pass()
    fleet.passes(1)
    while fleet.fake.now().minute % 5 or fleet.fake.now().second:
        fleet.passes(1)
    for demand in demands:
        for _ in range(20):
            fleet.share(demand)
            fleet.passes(1)
    fleet.passes(6)
    make_rollups(fleet.fake.now())
    found = card(fleet)
    assert (found.kept.adds, found.kept.removals) == (found.ran.adds, found.ran.removals)
    assert found.kept.adds + found.kept.removals > 0 or set(demands) == {4}
    assert found.covered_seconds >= 300 * len(demands)


def test_a_sweep_is_no_change_of_what_ran_whether_it_took_a_replica_or_had_one_of_its_own():
    fleet = Fleet(min_replicas=1, mode="advise")
    now = fleet.fake.now()
    start = bucket_of(now) - timedelta(hours=1)
    served, own = (
        Replica.objects.create(name=name, pool=fleet.pool, model=fleet.model, profile=fleet.profile, state="ready", nodes=["n1"])
        for name in ("served", "own")
    )
    for number, states in enumerate((("ready", ""), ("under_test", ""), ("ready", "under_test"), ("ready", ""))):
        there = [(row.pk, None, 10, None, state) for row, state in zip((served, own), states, strict=True) if state]
        ready = states[0] == "ready"
        sample = Sample(model=fleet.model, demand_high=0, ready=int(ready), capacity_ready=10 * ready, replicas=pack(there))
        Rollup.objects.create(model=fleet.model, at=start + number * timedelta(minutes=5), **roll([sample] * 20))
    ran = card(fleet).ran
    assert (ran.adds, ran.removals) == (0, 0)
    assert ran.unit_hours == {"sim": pytest.approx(4 * 5 / 60)}
