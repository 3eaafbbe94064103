"""Edges of time: "after N seconds" holds from exactly N on, None is long ago, and the future counts as just now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EARLIEST = datetime.min.replace(tzinfo=UTC)
LATEST = datetime.max.replace(tzinfo=UTC)


def reached(since: datetime | None, at: datetime, seconds: int) -> bool:
    """Whether at least `seconds` have passed."""
    return since is None or max(at - since, timedelta()) >= timedelta(seconds=seconds)


def passed(since: datetime | None, at: datetime, seconds: int) -> bool:
    """Whether more than `seconds` have passed."""
    return since is None or max(at - since, timedelta()) > timedelta(seconds=seconds)


def seconds_since(since: datetime, at: datetime) -> int:
    """Whole seconds, for sentences."""
    return max(at - since, timedelta()) // timedelta(seconds=1)


def earlier(at: datetime, seconds: int) -> datetime:
    """`seconds` before `at`, no earlier than a datetime can say."""
    span = timedelta(seconds=seconds)
    return at - span if at - EARLIEST >= span else EARLIEST


def later(at: datetime, seconds: int) -> datetime:
    """`seconds` after `at`, no later than a datetime can say."""
    span = timedelta(seconds=seconds)
    return at + span if LATEST - at >= span else LATEST
