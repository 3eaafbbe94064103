"""Latencies as engines count them: histograms since their start, what came between two readings, how many were quick enough."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

Latency = Literal["ttft", "tpot", "e2e"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """A latency since its engine's start. `bounds` in seconds, ascending, without infinity; `counts`: one a bound, how many
    observations were at or below it; `count`: all of them."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    count: int


def within(histogram: Histogram, seconds: float) -> float:
    """How many observations were at or below `seconds`, 0 to `count`.

    Inside a bucket they are taken to lie evenly, and the first bucket begins at 0, as Prometheus' histogram_quantile has it. What
    lies above the last bound does not count: nobody can say how far above."""
    at = bisect_left(histogram.bounds, seconds)
    if at == len(histogram.bounds):
        return float(histogram.counts[-1]) if histogram.counts else 0.0
    upper, upto = histogram.bounds[at], histogram.counts[at]
    if seconds == upper:
        return float(upto)
    lower, below = (histogram.bounds[at - 1], histogram.counts[at - 1]) if at else (0.0, 0)
    if seconds <= lower:
        return float(below)
    return below + (upto - below) * (seconds - lower) / (upper - lower)


def since(base: Histogram, now: Histogram) -> Histogram | None:
    """What was observed between two readings of one engine. A count that fell is a restart: all of `now` came after it. None
    where the buckets differ: another version of the engine answered, and nobody can say."""
    if base.bounds != now.bounds:
        return None
    if now.count < base.count or any(after < before for before, after in zip(base.counts, now.counts, strict=True)):
        return now
    counts = tuple(after - before for before, after in zip(base.counts, now.counts, strict=True))
    return Histogram(bounds=now.bounds, counts=counts, count=now.count - base.count)
