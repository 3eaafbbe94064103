"""Five-minute rollups, and the ages at which rows go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from capacity.models import BenchRun, Decision, Pass, Replica, Rollup, Sample
from capacity.rollup import AGES, bucket_of, make_rollups, prune, roll
from capacity.samples import pack
from capacity.series import ROLLED, from_rollups
from capacity.tests.factories import make_model, make_profile
from capacity.tests.pages import make_decision

NOW = datetime(2026, 11, 30, 12, 3, tzinfo=UTC)


def sample_of(at=NOW, loads=((1, 4), (2, None)), **fields):
    packed = pack((key, load, 10, None, "ready") for key, load in loads)
    return Sample(at=at, replicas=packed, **fields)


def test_a_total_is_mean_max_and_last():
    rolled = roll([sample_of(demand_low=2), sample_of(demand_low=9), sample_of(demand_low=4)])
    assert rolled["samples"] == 3
    assert rolled["totals"]["demand_low"] == [5.0, 9, 4]


def test_unknowns_are_left_out_and_a_total_of_unknowns_is_null():
    rolled = roll([sample_of(demand_high=4, rest_capacity=None), sample_of(demand_high=None, rest_capacity=None)])
    assert rolled["totals"]["demand_high"] == [4.0, 4, None]
    assert rolled["totals"]["rest_capacity"] is None


def test_a_replica_keeps_mean_max_last_and_unknown_stays_unknown():
    rolled = roll([sample_of(loads=((1, 4), (2, None))), sample_of(loads=((1, 9),)), sample_of(loads=((1, None),))])
    first, second = np.frombuffer(rolled["replicas"], dtype=ROLLED)
    assert (first["mean"], first["max"], first["last"], first["capacity"]) == (6.5, 9, -1, 10)
    assert np.isnan(second["mean"])
    assert (second["max"], second["last"]) == (-1, -1)


def test_rollups_are_drawn_as_their_means():
    rolled = roll([sample_of(loads=((1, 4),)), sample_of(loads=((1, 5),))])
    loads = from_rollups([(0, 9.0, 10.0, rolled["replicas"]), (300, None, None, rolled["replicas"])])
    assert loads.percent.tolist() == [[45.0, 45.0]]
    assert loads.rest[0] == 90.0
    assert np.isnan(loads.rest[1])


def test_five_minutes_that_end_under_test_are_a_gap_marked_so():
    tested = Sample(at=NOW, replicas=pack([(1, None, 10, None, "under_test"), (2, 3, 10, None, "ready")]))
    rolled = roll([sample_of(loads=((1, 4), (2, 3))), tested])
    loads = from_rollups([(0, 7.0, 10.0, rolled["replicas"])])
    assert loads.tested.tolist() == [[True], [False]]
    assert np.isnan(loads.percent[0, 0]) and loads.percent[1, 0] == 30.0


def store(model, minutes):
    for at in minutes:
        sample = sample_of(NOW - timedelta(minutes=at), demand_low=int(at))
        sample.model = model
        sample.save()


@pytest.mark.django_db
def test_only_five_minutes_that_are_over_are_rolled_and_only_once():
    model = make_model()
    store(model, (12, 11.5, 7, 2, 1))
    assert make_rollups(NOW) == 2
    assert make_rollups(NOW) == 0
    assert list(Rollup.objects.order_by("at").values_list("at", "samples")) == [
        (datetime(2026, 11, 30, 11, 50, tzinfo=UTC), 2),
        (datetime(2026, 11, 30, 11, 55, tzinfo=UTC), 1),
    ]
    assert make_rollups(NOW + timedelta(minutes=3)) == 1


@pytest.mark.django_db
def test_a_rollup_missed_for_hours_is_made_up_for():
    store(make_model(), (600, 5))
    make_rollups(NOW - timedelta(minutes=590))
    assert make_rollups(NOW) == 1
    assert Rollup.objects.count() == 2


def test_a_bucket_starts_at_a_whole_five_minutes():
    assert bucket_of(NOW) == datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.django_db
def test_rows_go_at_their_age_and_not_before():
    model = make_model()
    for age in (AGES["samples"], AGES["samples"] + timedelta(seconds=1)):
        Sample.objects.create(model=model, at=NOW - age)
    for age in (AGES["rollups"], AGES["rollups"] + timedelta(seconds=1)):
        Rollup.objects.create(model=model, at=NOW - age, samples=1, totals={})
    for age in (AGES["passes"], AGES["passes"] + timedelta(seconds=1)):
        Pass.objects.create(pool=model.pool, at=NOW - age, generation=1)
    prune(NOW)
    assert [kind.objects.count() for kind in (Sample, Rollup, Pass)] == [1, 1, 1]


@pytest.mark.django_db
def test_what_is_still_true_stays_however_old():
    model = make_model()
    long_ago = NOW - timedelta(days=400)
    make_decision(model, at=long_ago, seen_until=NOW)
    make_decision(model, at=long_ago, seen_until=long_ago)
    profile = make_profile(model)
    for name, gone in (("present", None), ("gone", long_ago)):
        Replica.objects.create(name=name, pool=model.pool, model=model, profile=profile, created_at=long_ago, gone_at=gone)
    for number, (state, ended) in enumerate((("waiting", None), ("done", NOW), ("done", long_ago), ("failed", long_ago))):
        of = make_profile(model, f"p{number}")
        BenchRun.objects.create(profile=of, state=state, created_at=long_ago, ended_at=ended)
    prune(NOW)
    assert list(BenchRun.objects.values_list("profile__name", flat=True).order_by("profile__name")) == ["p0", "p1"]
    assert Decision.objects.count() == 1
    assert list(Replica.objects.values_list("name", flat=True)) == ["present"]
