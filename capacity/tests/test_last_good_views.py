"""What the two views read from the database, and how they outlive it."""

from __future__ import annotations

import threading
from concurrent.futures import TimeoutError
from datetime import timedelta
from fractions import Fraction

import pytest
import redis
from django.db import DatabaseError

from capacity.last_good_views import (
    Bounded,
    dump_measurements,
    dump_policies,
    load_measurements,
    load_policies,
    measurement_fault,
    read_measurements,
    read_policies,
    views,
)
from capacity.tests.factories import make_measurement, make_pool, make_profile, make_scope
from capacity.tests.fleet import START
from quotas.models import CapacityQuota


@pytest.mark.django_db
def test_the_newest_current_measurement_is_in_use_and_else_the_newest_of_all():
    measured, doubtful = make_profile(), make_profile()
    for days, status, concurrency in ((3, "current", 5), (2, "current", 7), (1, "stale", 9)):
        make_measurement(measured, status=status, max_concurrency=concurrency, measured_at=START - timedelta(days=days))
    for days, status, concurrency in ((2, "assumed", 1), (1, "stale", 2)):
        make_measurement(doubtful, status=status, max_concurrency=concurrency, measured_at=START - timedelta(days=days))
    in_use = load_measurements(None).in_use
    chosen = {row.profile: (row.max_concurrency, row.status) for rows in in_use.values() for row in rows}
    assert chosen == {measured.name: (7, "current"), doubtful.name: (2, "stale")}


@pytest.mark.django_db
def test_scopes_keep_the_order_of_their_parents_and_quotas_their_pool():
    a, b = make_scope("a"), make_scope("b")
    team = make_scope("team", b, a, funding=a)
    pool = make_pool("p")
    CapacityQuota.objects.create(scope=team, pool=pool, target="sim", limit=0)
    CapacityQuota.objects.create(scope=team, pool=pool, target="gpu", guarantee=2)
    value = load_policies(None)
    assert {s.name: (s.parents, s.funding_parent) for s in value.scopes}["team"] == (("b", "a"), "a")
    assert {q.target: (q.guarantee, q.limit) for q in value.quotas["p"]} == {"sim": (None, 0), "gpu": (2, None)}
    assert load_policies(value) is value, "what was built from it stays"
    CapacityQuota.objects.filter(target="sim").update(limit=3)
    assert load_policies(value) is not value


@pytest.mark.parametrize(
    ("concurrency", "tokens", "status"),
    [(-1, 1, "current"), (None, 1, "current"), (1.5, 1, "current"), (1, None, "current"), (1, -1, "current"), (1, 1, "new")],
)
def test_a_stored_measurement_that_cannot_be_used_says_why(concurrency, tokens, status):
    assert measurement_fault(concurrency, tokens, status)


@pytest.mark.django_db
def test_a_bad_row_is_listed_and_hurts_no_other(monkeypatch):
    good, bad = make_profile(name="good"), make_profile(name="bad")
    make_measurement(good)
    make_measurement(bad, max_concurrency=13)
    monkeypatch.setattr(
        "capacity.last_good_views.measurement_fault", lambda concurrency, *rest: "is unlucky" if concurrency == 13 else ""
    )
    value = load_measurements(None)
    assert [row.profile for rows in value.in_use.values() for row in rows] == ["good"]
    assert value.skipped == ((f"{bad.model} · bad", "is unlucky"),)


@pytest.mark.django_db
def test_both_views_are_the_same_after_they_were_kept():
    scope = make_scope("a", make_scope("top"))
    CapacityQuota.objects.create(scope=scope, pool=make_pool("p"), target="sim", limit=2, lowered_at=START)
    make_measurement(tokens_per_second="33.300000")
    policies, measurements = load_policies(None), load_measurements(None)
    assert read_policies(dump_policies(policies)) == policies
    assert read_measurements(dump_measurements(measurements)) == measurements
    assert next(iter(measurements.in_use.values()))[0].tokens_per_second == Fraction(333, 10)


@pytest.mark.django_db
def test_a_worker_that_starts_while_the_database_is_away_finds_the_last_good_answer(redis_client):
    make_scope("acme")
    make_measurement()
    for view in views(redis_client, "here", bound=lambda load: load):
        assert view.get(START).error == ""

    def away(_load):
        def broken(_held):
            raise DatabaseError("connection refused")

        return broken

    later = START + timedelta(seconds=90)
    policies, measurements = (view.get(later) for view in views(redis_client, "here", bound=away))
    assert [scope.name for scope in policies.value.scopes] == ["acme"]
    assert (policies.age_seconds(later), policies.error) == (90, "DatabaseError: connection refused")
    assert len(measurements.value.in_use) == 1


@pytest.mark.django_db
def test_redis_away_or_full_of_nonsense_is_no_fault_of_the_view(redis_client):
    nobody = redis.Redis(port=1, socket_connect_timeout=0.2)
    policies, _ = views(nobody, "here", bound=lambda load: load)
    assert policies.get(START).error == ""
    for key in ("policies", "measurements"):
        redis_client.mset({f"llmgw:last-good:here:{key}": "[1", f"llmgw:last-good:here:{key}:at": "yesterday"})

    def broken(_load):
        def fail(_held):
            raise DatabaseError("gone")

        return fail

    assert [view.get(START).value for view in views(redis_client, "here", bound=broken)] == [None, None]


def test_a_read_that_hangs_is_given_up_and_no_second_one_is_begun():
    finish, begun = threading.Event(), []

    def hang(_held: object) -> str:
        begun.append(1)
        finish.wait(30)
        return "late"

    bounded = Bounded(hang, seconds=0.05)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            bounded(None)
    assert len(begun) == 1
    finish.set()
    assert Bounded(lambda held: "quick")(None) == "quick"


@pytest.mark.django_db
def test_every_reader_of_measurements_takes_the_same_one_to_be_in_use():
    profile = make_profile()
    current = make_measurement(profile, status="current", measured_at=START - timedelta(days=2))
    make_measurement(profile, status="assumed", measured_at=START - timedelta(days=1))
    assert profile.measurements.best_first().first() == current
