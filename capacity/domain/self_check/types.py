"""A measurement beside what live engines count: is its SLO kept below its concurrency, and are requests of the measured shape?

Every minute each ready replica's latencies are laid beside those of a minute before. What came in between counts where the load
was known all that time: below 90 % of the measured concurrency the SLO must hold (`optimistic` where it does not), above 120 % it
need not (`pessimistic` where it does). Restarts, other buckets and gaps count nothing. Buckets are read in the measurement's
favour: what may have been quick enough was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

from capacity.domain.latency import Histogram, Latency

BELOW: Final = (9, 10)
"""Near the concurrency itself the SLO is just kept, or just not: below this share of it there is no doubt."""
ABOVE: Final = (12, 10)
LEAST_SECONDS: Final = 30 * 60
LEAST_OBSERVED: Final = 200
"""So many that three standard deviations of a p95 are under 5 points."""
LEAST_SHORTFALL: Final = 0.01
"""Engines count a million tokens an hour, and requests come in crowds: a tenth of a per cent is no contradiction however sure."""
DEVIATIONS: Final = 3.0
"""One true attainment in a thousand looks that bad by chance, and it must look so in most of the ten minutes too."""
SLOT: Final = timedelta(minutes=10)
KEPT: Final = timedelta(hours=6)
LONGEST_GAP: Final = timedelta(minutes=3)
FACTOR: Final = 2.0

Band = Literal["below", "above", "between"]
Counter = Literal["input_tokens", "output_tokens", "prefix_queries", "prefix_hits"]
COUNTERS: Final[tuple[Counter, ...]] = ("input_tokens", "output_tokens", "prefix_queries", "prefix_hits")
Kind = Literal["", "optimistic", "pessimistic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an engine has counted since its start, read `at`. A counter that it does not have is absent."""

    at: datetime
    histograms: Mapping[Latency, Histogram]
    counters: Mapping[Counter, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """What came between two readings of one engine. `band`: where its load stayed meanwhile."""

    seconds: float
    band: Band
    came: Mapping[Latency, Histogram]
    counters: Mapping[Counter, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Mean lengths of requests in tokens, and the share of input tokens that lay in the prefix cache; None: unknown."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    prefix_hit_rate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Ten minutes. `below`, `above`: latency → (quick enough, all); of `below` those that may have been quick enough, of `above`
    those that surely were. `counts` are tokens and finished requests."""

    at: datetime
    seconds: float = 0.0
    seconds_below: float = 0.0
    seconds_above: float = 0.0
    below: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    above: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """`of`: the concurrency and targets that it was gathered for; with others it begins anew."""

    of: str = ""
    slots: tuple[Slot, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`sentence` with the figures: empty while nothing can be said. `off_shape`: what is far from the measured requests."""

    kind: Kind = ""
    sentence: str = ""
    off_shape: tuple[str, ...] = ()
