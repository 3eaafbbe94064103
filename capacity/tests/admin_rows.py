"""A row of each kind that the admin lists."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from capacity.models import (
    Action,
    Backoff,
    BenchRun,
    Brake,
    Decision,
    LanguageModel,
    Lease,
    Measurement,
    Node,
    Pass,
    PoolSettings,
    Profile,
    Replica,
    Rollup,
    Sample,
    Slo,
)
from capacity.tests.factories import make_measurement, make_model, make_node, make_pool, make_profile, make_scope
from quotas.models import Pool

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def replica(profile: Profile, **fields: Any) -> Replica:
    model = profile.model
    made = {"name": f"r-{Replica.objects.count()}", "pool": model.pool, "model": model, "profile": profile, **fields}
    return Replica.objects.create(**made)


def full_row(number: int) -> Measurement:
    """A row of each kind that the admin lists, all of one model of its own."""
    pool = make_pool()
    slo = Slo.objects.create(name=f"slo-{Slo.objects.count()}", ttft_percentile=95, ttft_ms=500)
    model = make_model(pool=pool, scope=make_scope(), slo=slo)
    profile, node = make_profile(model), make_node(pool=pool)
    replica(profile)
    at = NOW + timedelta(minutes=number)
    decision = Decision.objects.create(
        pool=pool, model=model, at=at, seen_until=at, outcome="add", reason="over_capacity", why="because"
    )
    Action.objects.create(pool=pool, model=model, decision=decision, op="start", reason="over_capacity", generation=1)
    BenchRun.objects.create(profile=profile, slo=slo, actor="olga", reason="a try")
    Pass.objects.create(pool=pool, at=at, generation=1)
    Sample.objects.create(model=model, at=at)
    Rollup.objects.create(model=model, at=at, samples=1, totals={})
    Backoff.objects.create(profile=profile, node=node, until=at)
    return make_measurement(profile, slo=slo)


CATALOGUE = [Pool, PoolSettings, Slo, Node, LanguageModel, Profile, Measurement]
RECORD = [Replica, BenchRun, Decision, Action, Pass, Sample, Rollup, Lease, Brake]
