"""Which level a sweep asks next (pure): the levels that were named, or the search for the highest that meets the SLO."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MOST_LEVEL: Final = 4096
MOST_LEVELS: Final = 64
AUTO: Final = "auto"
GROWTH: Final = 1.05
"""Twice the level with less than five per cent more tokens a second: the knee is passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One level that was measured; `tokens_per_second` None: unknown."""

    level: int
    meets: bool
    tokens_per_second: float | None = None


def parse_levels(text: str) -> tuple[int, ...] | None:
    """`auto` → None; `1,2,4,8` → those levels, rising, each once. ValueError with one sentence."""
    if text.strip().lower() == AUTO:
        return None
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdecimal() and len(part) <= 4 and 1 <= int(part) <= MOST_LEVEL):
            raise ValueError(
                f"Levels are auto, or whole numbers from 1 to {MOST_LEVEL} with commas between; {part[:40]!r} is none."
            )
    levels = tuple(sorted({int(part) for part in parts}))
    if len(levels) > MOST_LEVELS:
        raise ValueError(f"At most {MOST_LEVELS} levels, not {len(levels)}.")
    return levels


def next_level(tried: Sequence[Tried], *, levels: Sequence[int] | None, most: int) -> int | None:
    """The level to measure after those, None: the sweep is complete. `levels` None searches: it doubles from 1 until a level
    misses the SLO, then halves what lies between. It never goes above `most`, and asks no level twice."""
    if levels is not None:
        return next((level for level in sorted(levels) if level > max((row.level for row in tried), default=0)), None)
    passed, missed = _bounds(tried)
    if missed is not None:
        return None if missed - passed <= 1 else (passed + missed) // 2
    if passed >= most or is_flat(tried):
        return None
    return min(max(1, 2 * passed), most)


def levels_left(tried: Sequence[Tried], *, levels: Sequence[int] | None, most: int) -> int:
    """How many more levels are likely, the next among them. A search that still doubles is taken to miss at its next level."""
    if levels is not None:
        top = max((row.level for row in tried), default=0)
        return sum(level > top for level in levels)
    if next_level(tried, levels=None, most=most) is None:
        return 0
    passed, missed = _bounds(tried)
    if missed is not None:
        return math.ceil(math.log2(missed - passed))
    return 1 + math.ceil(math.log2(max(1, min(2 * passed, most) - passed)))


def is_flat(tried: Sequence[Tried]) -> bool:
    """The two last doublings each gave hardly more tokens a second: higher levels only wait longer."""
    at = {row.level: row.tokens_per_second for row in tried}
    top = max(at, default=0)
    return top >= 4 and _hardly_grew(at.get(top // 4), at.get(top // 2)) and _hardly_grew(at.get(top // 2), at[top])


def knee(tried: Sequence[Tried]) -> int | None:
    """The lowest level of which a level at least twice as high gave less than five per cent more tokens a second."""
    rows = sorted(tried, key=lambda row: row.level)
    for row in rows:
        above = next((higher for higher in rows if higher.level >= 2 * row.level), None)
        if above is not None and _hardly_grew(row.tokens_per_second, above.tokens_per_second):
            return row.level
    return None


def _bounds(tried: Sequence[Tried]) -> tuple[int, int | None]:
    """The highest level below the first that missed (0: none), and that one."""
    missed = min((row.level for row in tried if not row.meets), default=None)
    passed = max((row.level for row in tried if row.meets and (missed is None or row.level < missed)), default=0)
    return passed, missed


def _hardly_grew(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low > 0 and high < GROWTH * low
