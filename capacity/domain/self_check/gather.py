"""What came between two readings of an engine, gathered in slots of ten minutes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from capacity.domain.latency import Histogram
from capacity.domain.probation import Target
from capacity.domain.self_check.types import ABOVE, BELOW, KEPT, LONGEST_GAP, SLOT, Band, Interval, Reading, Slot, State


def band(loads: Sequence[int | None], concurrency: int) -> Band | None:
    """Where the load stayed; None where nobody knows for all the time."""
    if not loads or concurrency <= 0:
        return None
    known = [load for load in loads if load is not None]
    if len(known) < len(loads):
        return None
    if max(known) * BELOW[1] < concurrency * BELOW[0]:
        return "below"
    return "above" if min(known) * ABOVE[1] >= concurrency * ABOVE[0] else "between"


def interval(before: Reading | None, now: Reading, where: Band | None) -> Interval | None:
    """None where it counts nothing: no reading before, a gap, an unknown load, a restart, another version's buckets."""
    if before is None or where is None or not timedelta(0) < now.at - before.at <= LONGEST_GAP:
        return None
    came = {name: _between(before.histograms.get(name), found) for name, found in now.histograms.items()}
    counters = {name: value - before.counters[name] for name, value in now.counters.items() if name in before.counters}
    if before.histograms.keys() - now.histograms.keys() or any(value < 0 for value in counters.values()):
        return None
    whole = {name: found for name, found in came.items() if found is not None}
    if len(whole) < len(came):
        return None
    return Interval(seconds=(now.at - before.at).total_seconds(), band=where, came=whole, counters=counters)


def _between(before: Histogram | None, now: Histogram) -> Histogram | None:
    """None after a restart, or where the buckets are others."""
    if before is None or before.bounds != now.bounds or now.count < before.count:
        return None
    counts = tuple(after - earlier for earlier, after in zip(before.counts, now.counts, strict=True))
    return (
        None
        if any(count < 0 for count in counts)
        else Histogram(bounds=now.bounds, counts=counts, count=now.count - before.count)
    )


def at_most(found: Histogram, seconds: float) -> int:
    """How many may have been at or below `seconds`: the whole bucket that it lies in counts."""
    at = bisect_left(found.bounds, seconds)
    return found.counts[at] if at < len(found.bounds) else found.count


def at_least(found: Histogram, seconds: float) -> int:
    """How many surely were at or below `seconds`."""
    at = bisect_right(found.bounds, seconds)
    return found.counts[at - 1] if at else 0


def key(concurrency: int, targets: Iterable[Target]) -> str:
    """What a state is gathered for."""
    return " ".join([str(concurrency), *(f"{t.latency}:{t.percentile}:{t.bound_ms}" for t in targets)])


def folded(state: State, of: str, targets: Sequence[Target], found: Sequence[Interval], at: datetime) -> State:
    """The state after a minute's intervals of all replicas."""
    if state.of != of:
        state = State(of=of)
    kept = [slot for slot in state.slots if timedelta(0) <= at - slot.at <= KEPT]
    if not found:
        return replace(state, slots=tuple(kept))
    start = at - timedelta(seconds=at.timestamp() % SLOT.total_seconds())
    newest = kept.pop() if kept and kept[-1].at == start else Slot(at=start)
    return replace(state, slots=(*kept, _with(newest, targets, found)))


def _with(slot: Slot, targets: Sequence[Target], found: Sequence[Interval]) -> Slot:
    below = [row for row in found if row.band == "below"]
    above = [row for row in found if row.band == "above"]
    return replace(
        slot,
        seconds=slot.seconds + _longest(found),
        seconds_below=slot.seconds_below + _longest(below),
        seconds_above=slot.seconds_above + _longest(above),
        below=_added(slot.below, [(t.latency, at_most(h, t.bound_ms / 1000), h.count) for t, h in _judged(targets, below)]),
        above=_added(slot.above, [(t.latency, at_least(h, t.bound_ms / 1000), h.count) for t, h in _judged(targets, above)]),
        counts=_counted(slot.counts, found),
    )


def _longest(found: Sequence[Interval]) -> float:
    return max((row.seconds for row in found), default=0.0)


def _judged(targets: Sequence[Target], found: Sequence[Interval]) -> list[tuple[Target, Histogram]]:
    return [(target, row.came[target.latency]) for target in targets for row in found if target.latency in row.came]


def _added(sums: Mapping[str, tuple[int, int]], rows: Iterable[tuple[str, int, int]]) -> dict[str, tuple[int, int]]:
    after = dict(sums)
    for name, quick, count in rows:
        had = after.get(name, (0, 0))
        after[name] = (had[0] + quick, had[1] + count)
    return after


def _counted(counts: Mapping[str, int], found: Sequence[Interval]) -> dict[str, int]:
    """Only engines that count finished requests: the means are of those."""
    after = dict(counts)
    for row in found:
        if "e2e" not in row.came:
            continue
        after["requests"] = after.get("requests", 0) + row.came["e2e"].count
        for name, value in row.counters.items():
            after[name] = after.get(name, 0) + value
    return after
