"""Repeated timing of one thing, and a figure to print."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Milliseconds of each run after the warm-up: on the clock, and on the processor (what others on the machine do not move)."""

    wall_ms: Sequence[float]
    cpu_ms: Sequence[float]

    @property
    def median_ms(self) -> float:
        return median(self.wall_ms)

    @property
    def p95_ms(self) -> float:
        """The smallest run that at least 95 % of the runs do not exceed (nearest rank)."""
        return sorted(self.wall_ms)[-(-len(self.wall_ms) * 95 // 100) - 1]

    @property
    def words(self) -> str:
        return f"of {len(self.wall_ms)} runs; best {min(self.wall_ms):.1f} ms, on the processor {median(self.cpu_ms):.1f} ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measured value. `target`: at most so much; None: for information, and not in bench.json."""

    name: str
    value: float
    unit: str
    target: float | None = None
    note: str = ""


def timed(work: Callable[[], object], runs: int, before: Callable[[], object] | None = None) -> Timing:
    """One warm-up and `runs` runs. `before` makes each run ready and is not timed; each run begins without garbage."""
    taken = [_once(work, before) for _ in range(runs + 1)][1:]
    return Timing(wall_ms=[wall for wall, _ in taken], cpu_ms=[cpu for _, cpu in taken])


def _once(work: Callable[[], object], before: Callable[[], object] | None) -> tuple[float, float]:
    if before is not None:
        before()
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    kept = work()
    taken = (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000
    del kept  # its end is no part of the work
    return taken
