"""Times and durations as pages write them: one zone, UTC, and ages in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

STEPS = ((86400, "d"), (3600, "h"), (60, "min"))


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3 h`, `2 d`: the largest whole unit, two units' worth kept before it changes."""
    for size, unit in STEPS:
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def countdown(seconds: float) -> str:
    """`4 min 10 s`, `45 s`, `2 h`: to the second below two hours, for what will happen then."""
    whole = max(0, int(seconds))
    minutes, rest = divmod(whole, 60)
    if whole >= 7200 or not minutes:
        return duration(whole)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def age(at: datetime, now: datetime) -> str:
    return duration((now - at).total_seconds())


def exact(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def short(at: datetime, now: datetime) -> str:
    """The time of day, with the day where it is not within the last twenty hours."""
    moment = at.astimezone(UTC)
    return moment.strftime("%H:%M" if abs(now - at) < timedelta(hours=20) else "%d %b %H:%M")
