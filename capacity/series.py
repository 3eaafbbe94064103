"""Rows of samples → arrays that a chart, a table and a CSV are drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .samples import STATES, UNDER_TEST, UNKNOWN, unpack

Floats = NDArray[np.float64]
Times = NDArray[np.int64]
READABLE_STATES = (STATES.index("ready"), STATES.index("unready"))
TESTED = STATES.index(UNDER_TEST)

# One record a replica in `Rollup.replicas`: its requests in flight over the five minutes.
ROLLED = np.dtype(
    [
        ("replica", "<i8"),  # primary key of the Replica
        ("mean", "<f4"),  # requests in flight; NaN when never read
        ("max", "<i8"),  # -1 unknown
        ("last", "<i8"),  # -1 unknown
        ("capacity", "<i8"),  # the last measured concurrency; -1 unmeasured
        ("state", "i1"),  # the last, an index into samples.STATES
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """A model's loads over time: r replicas, n instants.

    at [n]: epoch seconds, ascending · replicas [r]: primary keys · in_flight, capacity, percent [r, n]: NaN where unknown,
    unmeasured or absent · tested [r, n]: a sweep had it to itself, its load is none of the model's · unread [n]: a ready or
    unready replica had no reading, or no pass came · rest [n]: % of the capacity that would stay if one were taken back, NaN
    unknown. `interval_seconds` lies between two rows where none is missing.
    """

    at: Times
    replicas: NDArray[np.int64]
    in_flight: Floats
    capacity: Floats
    percent: Floats
    tested: NDArray[np.bool_]
    unread: NDArray[np.bool_]
    rest: Floats
    interval_seconds: float

    @property
    def is_empty(self) -> bool:
        return not len(self.at)


def from_samples(rows: Sequence[tuple[int, int | None, int | None, bytes]], interval_seconds: float) -> Loads:
    """(epoch seconds, demand_high, rest_capacity, packed replicas) a pass, oldest first → loads.

    A gap stands where passes are missing.
    """
    records = unpack(b"".join(row[3] for row in rows))
    counts = _record_counts(rows, records.dtype.itemsize)
    in_flight = np.where(records["in_flight"] == UNKNOWN, np.nan, records["in_flight"].astype(float))
    return _loads(rows, records, counts, in_flight, interval_seconds)


def from_rollups(rows: Sequence[tuple[int, float | None, float | None, bytes]], interval_seconds: float = 300) -> Loads:
    """(epoch seconds, mean demand, mean rest capacity, packed ROLLED replicas) five minutes a row → loads of the means."""
    records = np.frombuffer(b"".join(row[3] for row in rows), dtype=ROLLED)
    counts = _record_counts(rows, ROLLED.itemsize)
    return _loads(rows, records, counts, records["mean"].astype(float), interval_seconds)


def epoch_seconds(texts: Iterable[str]) -> list[int]:
    """Instants as databases write them in UTC (`2026-11-30 12:00:00…`) → whole epoch seconds, without a datetime for each."""
    return np.array([text[:19] for text in texts], dtype="datetime64[s]").astype(np.int64).tolist()


def _record_counts(rows: Sequence[tuple[Any, Any, Any, bytes]], size: int) -> NDArray[np.int64]:
    return np.fromiter((len(row[3]) // size for row in rows), dtype=np.int64, count=len(rows))


def _loads(
    rows: Sequence[tuple[int, Any, Any, bytes]],
    records: NDArray[np.void],
    counts: NDArray[np.int64],
    in_flight: Floats,
    interval_seconds: float,
) -> Loads:
    at = np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
    replicas, row_of = np.unique(records["replica"], return_inverse=True)
    column_of = np.repeat(np.arange(len(rows)), counts)
    shape = (len(replicas), len(rows))
    tested = records["state"] == TESTED
    in_flight = np.where(tested, np.nan, in_flight)
    capacity = np.where(records["capacity"] == UNKNOWN, np.nan, records["capacity"].astype(float))
    readable = np.isin(records["state"], READABLE_STATES)
    unread = np.zeros(len(rows), dtype=bool)
    unread[column_of[readable & np.isnan(in_flight)]] = True
    columns = (in_flight, capacity, share(in_flight, capacity), np.where(tested, 1.0, np.nan))
    grids = [_grid(shape, row_of, column_of, values) for values in columns]
    rest = share(_numbers(rows, 1), _numbers(rows, 2))
    return _with_gaps(at, replicas, [*grids, rest[None, :]], unread, interval_seconds)


def share(load: Floats, capacity: Floats) -> Floats:
    """Load as % of capacity: no load is 0 %, load on no capacity has no share (NaN)."""
    percent = np.full(load.shape, np.nan)
    np.divide(100.0 * load, capacity, out=percent, where=capacity > 0)
    percent[(capacity == 0) & (load == 0)] = 0.0
    return percent


def _numbers(rows: Sequence[tuple[Any, ...]], column: int) -> Floats:
    return np.fromiter((np.nan if row[column] is None else row[column] for row in rows), dtype=np.float64, count=len(rows))


def _grid(shape: tuple[int, int], row_of: NDArray[np.int64], column_of: NDArray[np.int64], values: Floats) -> Floats:
    grid = np.full(shape, np.nan)
    grid[row_of, column_of] = values
    return grid


def _with_gaps(
    at: Times, replicas: NDArray[np.int64], grids: list[Floats], unread: NDArray[np.bool_], interval_seconds: float
) -> Loads:
    """One unknown instant where more than two intervals lie between rows: a line must not bridge what nobody saw."""
    after = np.flatnonzero(np.diff(at) > 2 * interval_seconds)
    where = after + 1
    in_flight, capacity, percent, tested, rest = (np.insert(grid, where, np.nan, axis=1) for grid in grids)
    return Loads(
        at=np.insert(at, where, at[after] + int(interval_seconds)),
        replicas=replicas,
        in_flight=in_flight,
        capacity=capacity,
        percent=percent,
        tested=tested == 1.0,
        unread=np.insert(unread, where, True),
        rest=rest[0],
        interval_seconds=interval_seconds,
    )


def thin(values: Floats, limit: int) -> NDArray[np.int64]:
    """Indices [≤ limit] of one line that keep the lowest, the highest and the first unknown of each stretch, and the last.

    Unknowns that only repeat the one before, or that lead, are left out.
    """
    kept = np.arange(len(values)) if len(values) <= limit else _extremes(values, (limit - 1) // 3)
    unknown = np.isnan(values[kept])
    follows_known = np.concatenate(([False], ~unknown[:-1]))
    return kept[~unknown | follows_known]


def _extremes(values: Floats, buckets: int) -> NDArray[np.int64]:
    width = -(-len(values) // buckets)
    padded = np.pad(values, (0, width * buckets - len(values)), mode="edge").reshape(buckets, width)
    unknown = np.isnan(padded)
    starts = np.arange(buckets) * width
    picks = (
        np.where(unknown, np.inf, padded).argmin(axis=1),
        np.where(unknown, -np.inf, padded).argmax(axis=1),
        unknown.argmax(axis=1),
    )
    last = len(values) - 1
    chosen = np.concatenate([np.minimum(starts + pick, last) for pick in picks])
    return np.unique(np.append(chosen, last))


def stretches(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(first, last) index of each unbroken run of true flags."""
    edges = np.diff(np.concatenate(([0], flags.astype(np.int8), [0])))
    return list(zip(np.flatnonzero(edges == 1).tolist(), (np.flatnonzero(edges == -1) - 1).tolist(), strict=True))


def lines(loads: Loads) -> Iterator[tuple[int, int, float | None, float | None, float | None, bool]]:
    """(epoch seconds, replica key, in flight, measured concurrency, %, under test) for each reading: the rows of a CSV."""
    for column, at in enumerate(loads.at.tolist()):
        for row, replica in enumerate(loads.replicas.tolist()):
            numbers = [grid[row, column] for grid in (loads.in_flight, loads.capacity, loads.percent)]
            tested = bool(loads.tested[row, column])
            if tested or not np.isnan(numbers).all():
                yield at, replica, *(None if np.isnan(number) else float(number) for number in numbers), tested
