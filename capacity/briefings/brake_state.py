"""How a pool's brake stands, as page, API and command show it: numbers first, then what is withheld and why."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.dateparse import parse_datetime

from quotas.models import Pool

from .. import brake_rows
from ..domain.brake import Counted, Release, Situation, counted, holds, standing
from ..domain.phrases import number
from ..models import Brake, Replica

SPANS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakeState:
    """`is_on`: pulled, and its time has not passed. `version` moves with each act of a person and with what is withheld."""

    pool: str
    is_on: bool
    until: datetime | None
    reason: str
    actor: str
    changed_at: datetime | None
    withheld: tuple[brake_rows.Row, ...]
    withheld_since: datetime | None
    released: Release | None
    counted: Counted
    window_seconds: int
    version: str

    @property
    def by_rule(self) -> Mapping[str, int]:
        return dict(sorted(Counter(row["rule"] for row in self.withheld).items()))

    @property
    def lets_through(self) -> str:
        """What a release lets through: `3 stops, 1 start`; empty where nothing is withheld."""
        return amounts(self.withheld)


def amounts(rows: Iterable[brake_rows.Row]) -> str:
    """`3 stops, 1 start`."""
    kinds = Counter({"drain": "stop", "cancel": "stop"}.get(row["op"], row["op"]) for row in rows)
    return ", ".join(number(kinds[kind], kind) for kind in ("stop", "start", "undrain") if kinds[kind])


def state(pool: Pool, now: datetime) -> BrakeState:
    """Three queries, two where the brake and the settings are at hand."""
    brake, settings = pool.brake, pool.settings
    ready = Replica.objects.filter(pool=pool, gone_at=None, state=Replica.State.READY).count()
    release = brake_rows.release(brake)
    bounds = brake_rows.bounds(settings)
    past = Situation(ready=ready, events=brake_rows.events(brake), release=release)
    is_on = is_pulled(brake, now)
    return BrakeState(
        pool=pool.name,
        is_on=is_on,
        until=brake.until if is_on else None,
        reason=brake.reason,
        actor=brake.actor,
        changed_at=brake.changed_at,
        withheld=tuple(standing_rows(brake, now)),
        withheld_since=brake.withheld_since,
        released=standing(release, now),
        counted=counted(past, bounds, now),
        window_seconds=bounds.window_seconds,
        version=version(brake),
    )


def is_pulled(brake: Brake, now: datetime) -> bool:
    return holds(brake_rows.manual(brake), now)


def standing_rows(brake: Brake, now: datetime) -> list[brake_rows.Row]:
    """What the last pass withheld, in the words of today."""
    manual_now = brake_rows.manual(brake) if is_pulled(brake, now) else None
    return [brake_rows.as_it_stands(row, manual_now) for row in brake.withheld]


def version(brake: Brake) -> str:
    """Of what a person sees before a release: a release of another list is refused."""
    seen = [brake.is_on, brake.until, brake.changed_at, [(*brake_rows.sameness(row), row["since"]) for row in brake.withheld]]
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


def document(found: BrakeState) -> dict[str, Any]:
    """The same as JSON; times in UTC with a Z."""
    release = found.released
    return {
        "pool": found.pool,
        "on": found.is_on,
        "until": _iso(found.until),
        "reason": found.reason,
        "actor": found.actor,
        "changed_at": _iso(found.changed_at),
        "window_seconds": found.window_seconds,
        "stops": {"counted": found.counted.stops, "allowed": found.counted.stops_allowed},
        "starts": {"counted": found.counted.starts, "allowed": found.counted.starts_allowed},
        "withheld_since": _iso(found.withheld_since),
        "withheld": [{**row, "since": _iso(datetime.fromisoformat(row["since"]))} for row in found.withheld],
        "released": None
        if release is None
        else {
            "until": _iso(release.until),
            "stops": dict(release.stops),
            "starts": dict(release.starts),
            "unready": sorted(release.unready),
        },
        "version": found.version,
    }


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def parse_until(text: str, now: datetime) -> datetime | None:
    """`30m`, `2h`, `1d`, or an instant such as `2026-11-30T14:00Z` (UTC where it names no zone). Empty: None, until it is
    released. `ValueError` with a sentence for anything else."""
    text = text.strip()
    if not text:
        return None
    found = _span(text, now) or _instant(text)
    if found is None:
        raise ValueError(f"“{text[:60]}” is no time: write 30m, 2h, or an instant such as 2026-11-30T14:00Z.")
    return found


def _span(text: str, now: datetime) -> datetime | None:
    found = re.fullmatch(r"([0-9]{1,5}) ?([a-z]+)", text)
    if found is None or found[2] not in SPANS:
        return None
    return now + timedelta(seconds=int(found[1]) * SPANS[found[2]])


def _instant(text: str) -> datetime | None:
    """None where it is none, or lies beyond what a date can tell."""
    try:
        found = parse_datetime(text)
        if found is not None and found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        return found and found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
