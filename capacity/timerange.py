"""The time range of a chart, as it stands in the address: `?from=now-6h&to=now`, or exact UTC instants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

RELATIVE = re.compile(r"now(?:-(\d{1,6})([smhd]))?")
UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
PRESETS = (("15 min", "now-15m"), ("1 h", "now-1h"), ("6 h", "now-6h"), ("24 h", "now-24h"), ("7 d", "now-7d"))
# what is shown where the address names no range: the first that a model's whole history fits in, else six hours
DEFAULTS = ((timedelta(minutes=15), "now-15m"), (timedelta(hours=1), "now-1h"))
USUAL = "now-6h"
LONGEST = timedelta(days=90)
SHORTEST = timedelta(minutes=1)
RAW_SPAN = timedelta(hours=24)


class InvalidRange(ValueError):
    """The range cannot be read. Its text is a sentence for the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """From `start` to `end`, both aware UTC. `since` and `until` are the words of the address."""

    start: datetime
    end: datetime
    since: str
    until: str
    now: datetime

    @property
    def is_raw(self) -> bool:
        """Samples of each pass are kept for a day; longer ranges read the five-minute rollups."""
        return self.start >= self.now - RAW_SPAN - timedelta(minutes=5) and self.end - self.start <= RAW_SPAN


def default_since(begun: datetime, now: datetime) -> str:
    """What to show of a model whose history began then: a young one's few minutes would be a sliver of six hours."""
    return next((word for span, word in DEFAULTS if now - begun < span), USUAL)


def parse_range(since: str | None, until: str | None, now: datetime, usual: str = USUAL) -> TimeRange:
    """The range of the two words; where both are absent from `usual` to now. Raises InvalidRange."""
    since, until = since or usual, until or "now"
    start, end = _instant(since, now), _instant(until, now)
    if end - start < SHORTEST:
        raise InvalidRange(f"The range from {since[:40]} to {until[:40]} is shorter than a minute.")
    if end - start > LONGEST:
        raise InvalidRange("The range is longer than the 90 days that are kept.")
    return TimeRange(start=start, end=end, since=since, until=until, now=now)


def _instant(word: str, now: datetime) -> datetime:
    relative = RELATIVE.fullmatch(word)
    if relative:
        count, unit = relative.groups()
        return now - timedelta(seconds=int(count) * UNIT_SECONDS[unit]) if count else now
    try:
        instant = datetime.fromisoformat(word)
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidRange(f"“{word[:40]}” is no time: write now-6h or 2026-11-30T09:00:00Z.") from None
