"""Five-minute rollups of samples, and the ages at which rows go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import numpy as np
from django.db.models import Max, Min, QuerySet

from .models import Action, BenchRun, Decision, Pass, Replica, Rollup, Sample
from .samples import UNKNOWN, unpack
from .series import ROLLED

BUCKET_SECONDS = 300
BUCKET = timedelta(seconds=BUCKET_SECONDS)
SETTLE = timedelta(seconds=60)  # a pass that runs late still finds its bucket open
AGES: Mapping[str, timedelta] = {
    "samples": timedelta(hours=24),
    "rollups": timedelta(days=90),
    "passes": timedelta(days=14),
    "decisions": timedelta(days=90),
    "actions": timedelta(days=90),
    "replicas": timedelta(days=90),
    "sweeps": timedelta(days=90),
}
TOTALS = (
    "demand_low",
    "demand_high",
    "held_requests",
    "capacity_ready",
    "capacity_starting",
    "rest_capacity",
    "ready",
    "unready",
    "starting",
    "draining",
    "wanted",
    "tokens_per_second",
)


def roll(samples: Sequence[Any]) -> dict[str, Any]:
    """The rollup's fields of one model's samples of five minutes, oldest first.

    `totals`: name → [mean, max, last] of the known values, null where none is known (a last one that is unknown is null).
    `replicas`: one series.ROLLED record for each replica that was seen.
    """
    return {
        "samples": len(samples),
        "totals": {name: _total([getattr(sample, name) for sample in samples]) for name in TOTALS},
        "replicas": _roll_replicas([bytes(sample.replicas) for sample in samples]),
    }


def _total(values: Sequence[float | None]) -> list[float | None] | None:
    known = [value for value in values if value is not None]
    return [round(sum(known) / len(known), 3), max(known), values[-1]] if known else None


def _roll_replicas(blobs: Sequence[bytes]) -> bytes:
    records = unpack(b"".join(blobs))
    order = np.argsort(records["replica"], kind="stable")
    groups = np.split(records[order], np.flatnonzero(np.diff(records["replica"][order])) + 1) if len(records) else []
    return np.array([_roll_one(group) for group in groups], dtype=ROLLED).tobytes()


def _roll_one(group: Any) -> tuple[int, float, int, int, int, int]:
    known = group["in_flight"][group["in_flight"] != UNKNOWN]
    last = group[-1]
    mean, most = (float(known.mean()), int(known.max())) if len(known) else (float("nan"), UNKNOWN)
    return int(last["replica"]), mean, most, int(last["in_flight"]), int(last["capacity"]), int(last["state"])


def make_rollups(now: datetime) -> int:
    """Rolls every five minutes that are over and not rolled yet; how many rows were written. Safe to run twice."""
    first = _first_bucket(now)
    written = 0
    while first is not None and first + BUCKET + SETTLE <= now:
        written += _roll_bucket(first)
        first += BUCKET
    return written


def _first_bucket(now: datetime) -> datetime | None:
    """The bucket after the newest rolled one, or of the oldest sample; never older than samples are kept."""
    newest = Rollup.objects.aggregate(at=Max("at"))["at"]
    kept = Sample.objects.filter(at__gte=newest + BUCKET) if newest else Sample.objects.all()
    oldest = kept.aggregate(at=Min("at"))["at"]
    return None if oldest is None else bucket_of(max(oldest, now - AGES["samples"]))


def bucket_of(at: datetime) -> datetime:
    """The start of the five minutes that hold `at`."""
    seconds = int(at.timestamp())
    return datetime.fromtimestamp(seconds - seconds % BUCKET_SECONDS, UTC)


def _roll_bucket(start: datetime) -> int:
    inside = Sample.objects.filter(at__gte=start, at__lt=start + BUCKET).order_by("model_id", "at")
    rows = [
        Rollup(model_id=model, at=start, **roll(list(samples)))
        for model, samples in groupby(inside.iterator(chunk_size=2000), key=lambda sample: sample.model_id)
    ]
    Rollup.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True)
    return len(rows)


def prune(now: datetime) -> dict[str, int]:
    """Deletes what is older than its age; kind → rows deleted. Open decisions, actions and sweeps and present replicas stay."""
    cutoffs = {kind: now - age for kind, age in AGES.items()}
    old: Iterable[tuple[str, QuerySet[Any]]] = (
        ("samples", Sample.objects.filter(at__lt=cutoffs["samples"])),
        ("rollups", Rollup.objects.filter(at__lt=cutoffs["rollups"])),
        ("passes", Pass.objects.filter(at__lt=cutoffs["passes"])),
        ("actions", Action.objects.filter(created_at__lt=cutoffs["actions"]).exclude(state__in=("pending", "sent"))),
        ("decisions", Decision.objects.filter(seen_until__lt=cutoffs["decisions"], actions__isnull=True)),
        ("replicas", Replica.objects.filter(gone_at__lt=cutoffs["replicas"])),
        ("sweeps", BenchRun.objects.filter(ended_at__lt=cutoffs["sweeps"]).exclude(state__in=BenchRun.OPEN)),
    )
    return {kind: rows.delete()[0] for kind, rows in old}
