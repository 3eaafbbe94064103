"""The self-check: each minute the measurements in force are laid beside what live engines count.

A task of its own and not a part of the pass: a verdict takes half an hour, so that a minute more or less is nothing, and a pass
asks the database and Redis for nothing more. What it finds reaches the passes as any edit of a measurement does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from quotas.models import Pool

from .domain.measurement.sound import LARGEST
from .domain.probation import Target
from .domain.self_check import Interval, Reading, Shape, band, document, finding, folded, interval, key, read
from .models import BenchRun, Measurement, Replica, Sample, Slo
from .ports import Latencies, MetricSource
from .recording import bulk
from .rows.load import LATENCIES
from .samples import STATES, UNKNOWN, unpack
from .services.contradicting import contradicted
from .sources.store import LoadStore

LOOKBACK = timedelta(seconds=60)
"""What ends in an interval may have begun before it: the load must have been known and alike for so long before, too."""
READY = STATES.index("ready")
LOADED_BY_HAND = (BenchRun.State.EMPTYING, BenchRun.State.TESTING)

Loads = Mapping[int, Sequence[tuple[datetime, int | None]]]
"""Replica's id → (pass, requests in flight), None where it was unknown or the replica not ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A ready replica of a profile."""

    pk: int
    name: str
    profile: int


def check_pool(pool: Pool, source: MetricSource, store: LoadStore, now: datetime) -> int:
    """One look at the measurements in force of the pool; how many were contradicted. Where Redis is away nothing counts."""
    measured = in_force(pool)
    engines = ready_engines(measured)
    latencies = source.latencies(pool.name, [engine.name for engine in engines])
    if latencies is None:
        return 0
    before = store.checked(pool.name)
    loads = recorded_loads({row.profile.model_id for row in measured.values()}, now)
    by_profile: dict[int, list[Interval]] = {}
    for engine in engines:
        if (came := between(engine, measured[engine.profile], before, latencies, loads)) is not None:
            by_profile.setdefault(engine.profile, []).append(came)
    kept = store.keep_checked(pool.name, latencies)
    # what is not kept would be counted twice
    return judge(measured, by_profile if kept else {}, now)


def in_force(pool: Pool) -> dict[int, Measurement]:
    """Profile → its newest current measurement, where that promises anything."""
    rows = Measurement.objects.filter(profile__model__pool=pool, status=Measurement.Status.CURRENT).best_first()
    found: dict[int, Measurement] = {}
    for row in rows.select_related("slo", "profile__model__slo"):
        found.setdefault(row.profile_id, row)
    return {profile: row for profile, row in found.items() if row.max_concurrency > 0}


def ready_engines(profiles: Iterable[int]) -> list[Engine]:
    """Without those that a sweep loads."""
    rows = Replica.objects.filter(profile__in=list(profiles), state=Replica.State.READY, gone_at__isnull=True)
    rows = rows.exclude(bench_runs__state__in=LOADED_BY_HAND)
    return [Engine(pk=pk, name=name, profile=profile) for pk, name, profile in rows.values_list("pk", "name", "profile_id")]


def recorded_loads(models: Iterable[int], now: datetime) -> Loads:
    """What the passes of the last minutes have recorded."""
    rows = Sample.objects.filter(model__in=list(models), at__gt=now - timedelta(minutes=5)).order_by("at")
    found: dict[int, list[tuple[datetime, int | None]]] = {}
    for at, blob in rows.values_list("at", "replicas"):
        for record in unpack(bytes(blob)):
            known = record["state"] == READY and record["in_flight"] != UNKNOWN
            found.setdefault(int(record["replica"]), []).append((at, int(record["in_flight"]) if known else None))
    return found


def between(
    engine: Engine, measurement: Measurement, before: Mapping[str, Latencies], latencies: Mapping[str, Latencies], loads: Loads
) -> Interval | None:
    earlier, later = before.get(engine.name), latencies.get(engine.name)
    if earlier is None or later is None:
        return None
    passes = [load for at, load in loads.get(engine.pk, ()) if earlier.at - LOOKBACK <= at <= later.at]
    # as many passes as there must have been, one or two missed: with fewer nobody knows what the load was between them
    enough = (later.at - earlier.at + LOOKBACK).total_seconds() / settings.PASS_SECONDS - 2
    where = band(passes, measurement.max_concurrency) if len(passes) >= max(1, enough) else None
    return interval(reading(earlier), reading(later), where)


def reading(found: Latencies) -> Reading:
    return Reading(at=found.at, histograms=found.histograms, counters=found.counters)


def judge(measured: Mapping[int, Measurement], came: Mapping[int, Sequence[Interval]], now: datetime) -> int:
    """Writes what was gathered and found; how many measurements were contradicted."""
    changed, against = [], []
    for profile, row in measured.items():
        if not came.get(profile) and not row.self_check:
            continue
        targets = targets_of(row.slo or row.profile.model.slo)
        state = folded(read(row.self_check), key(row.max_concurrency, targets), targets, came.get(profile, ()), now)
        found = finding(state, row.max_concurrency, targets, measured_shape(row))
        row.self_check = document(state, found, now)
        changed.append(row)
        if found.kind == "optimistic":
            against.append((row, found))
    bulk.update(changed, ["self_check"])
    return sum(contradicted(row, found.sentence, now) for row, found in against)


def targets_of(slo: Slo | None) -> tuple[Target, ...]:
    """Of the SLO's bounds those that have a percentile."""
    bounds = [(name, getattr(slo, f"{name}_percentile", None), getattr(slo, f"{name}_ms", None)) for name in LATENCIES]
    return tuple(
        Target(latency=name, percentile=percentile, bound_ms=ms)
        for name, percentile, ms in bounds
        if percentile is not None and ms is not None and 0 < percentile < 100
    )


def measured_shape(measurement: Measurement) -> Shape:
    """The requests that it was made with, else those that its model is said to have."""
    evidence: Any = measurement.evidence if isinstance(measurement.evidence, dict) else {}
    setting = evidence.get("setting") if isinstance(evidence.get("setting"), dict) else evidence
    model = measurement.profile.model
    rate = _positive(evidence.get("cache_hit_rate"), zero=True)
    return Shape(
        input_tokens=_positive(setting.get("input_tokens")) or model.input_tokens,
        output_tokens=_positive(setting.get("output_tokens")) or model.output_tokens,
        prefix_hit_rate=rate if rate is not None and rate <= 1 else None,
    )


def _positive(value: Any, zero: bool = False) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value <= LARGEST
    return float(value) if is_number and (value > 0 or (zero and value == 0)) else None
