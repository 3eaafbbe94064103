"""The brake's row as the domain's values, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from .domain.brake import Bounds, Event, Manual, Release, Withheld
from .domain.brake.words import manual_sentence, manual_then
from .domain.types import Action
from .models import Brake, PoolSettings

Row = Mapping[str, Any]
LONGEST_WINDOW_SECONDS = 86_400
"""What forms refuse beyond; a row that was written otherwise does not let the counts grow without end."""


def bounds(settings: PoolSettings) -> Bounds:
    return Bounds(
        window_seconds=min(settings.brake_window_seconds, LONGEST_WINDOW_SECONDS),
        stops=settings.brake_stops,
        stop_percent=settings.brake_stop_percent,
        starts=settings.brake_starts,
        start_percent=settings.brake_start_percent,
    )


def manual(brake: Brake) -> Manual | None:
    return Manual(until=brake.until) if brake.is_on else None


def events(brake: Brake) -> list[Event]:
    return [Event(**{**row, "at": datetime.fromisoformat(row["at"])}) for row in brake.recent]


def event_row(event: Event) -> Row:
    return {**asdict(event), "at": event.at.isoformat()}


def release(brake: Brake) -> Release | None:
    if not brake.released:
        return None
    row = brake.released
    return Release(
        until=datetime.fromisoformat(row["until"]),
        stops=row["stops"],
        starts=row["starts"],
        unready=frozenset(row["unready"]),
    )


def release_row(found: Release | None) -> Row:
    if found is None:
        return {}
    return {
        "until": found.until.isoformat(),
        "stops": dict(found.stops),
        "starts": dict(found.starts),
        "unready": sorted(found.unready),
    }


def withheld(brake: Brake) -> list[Withheld]:
    """What the newest pass withheld, in the plan's order."""
    return [
        Withheld(
            action=Action(
                op=row["op"],
                model=row["model"],
                reason=row["reason"],
                profile=row["profile"],
                nodes=tuple(row["nodes"]),
                replica=row["replica"] or None,
            ),
            rule=row["rule"],
            why=row["why"],
            also=row["also"] or None,
        )
        for row in brake.withheld
    ]


def withheld_row(found: Withheld, since: datetime) -> Row:
    action = found.action
    return {
        "op": action.op,
        "model": action.model,
        "replica": action.replica or "",
        "profile": action.profile,
        "nodes": list(action.nodes),
        "reason": action.reason,
        "rule": found.rule,
        "also": found.also or "",
        "why": found.why,
        "since": since.isoformat(),
    }


def as_it_stands(row: Row, manual_now: Manual | None) -> Row:
    """A row of the last pass, not contradicted by what a person did to the brake since: its end is today's, or it is off."""
    if row["rule"] != "manual":
        return row
    return {**row, "why": manual_sentence(manual_now) if manual_now else manual_then()}


def sameness(row: Row) -> tuple[Any, ...]:
    """By what a withheld action is the same as in the pass before. Where a start would go may differ from pass to pass."""
    return tuple(row[key] for key in ("op", "model", "replica", "profile", "reason", "rule", "also"))


def window(settings: PoolSettings) -> timedelta:
    return timedelta(seconds=bounds(settings).window_seconds)
