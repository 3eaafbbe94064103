"""The newest reading of every replica, in Redis: written by the scraping task, read by the pass (`MetricSource`)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, get_args

from redis import Redis
from redis.exceptions import RedisError

from capacity.ports import Counter, Histogram, Latencies, Latency, Sample
from capacity.sources.engines import Skipped

KEEP = timedelta(hours=1)  # far beyond any window in which a sample is still good
MOST_TOKENS = 10**18  # a counter that runs for years


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why the last reading of a replica failed, and when."""

    reason: str
    at: datetime


class LoadStore:
    """Three hashes a pool, replica → JSON: the last good sample, the latencies that came with it (by themselves, so that a pass
    does not carry them), and the last failure.

    Each write drops entries older than an hour: those of replicas that are gone."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def write(self, pool: str, readings: Mapping[str, Sample | Skipped], now: datetime) -> bool:
        """Record a round of readings; False where Redis did not take them.

        A failure leaves the last good sample in place: it ages, and whoever reads it judges its age."""
        samples = {name: _sample_json(found) for name, found in readings.items() if isinstance(found, Sample)}
        failures = {name: _failure_json(found, now) for name, found in readings.items() if isinstance(found, Skipped)}
        latencies = {name: _latencies_json(found) for name, found in readings.items() if isinstance(found, Sample)}
        latencies = {name: row for name, row in latencies.items() if row}
        try:
            old_samples = self._old(_loads_key(pool), "sampled_at", now)
            old_failures = self._old(_failures_key(pool), "at", now)
            with self._redis.pipeline(transaction=True) as pipe:
                _replace(pipe, _loads_key(pool), samples, gone=old_samples - samples.keys())
                # an engine that no longer counts them has none
                _replace(pipe, _latencies_key(pool), latencies, gone=(old_samples | samples.keys()) - latencies.keys())
                # A good reading ends a failure.
                _replace(pipe, _failures_key(pool), failures, gone=(old_failures | samples.keys()) - failures.keys())
                pipe.execute()
        except RedisError:
            return False
        return True

    def loads(self, pool: str) -> Mapping[str, Sample] | None:
        """Replica → newest good sample, however old within the hour; None where Redis cannot be read."""
        rows = self._rows(_loads_key(pool))
        if rows is None:
            return None
        return {name: sample for name, row in rows.items() if (sample := _sample(row)) is not None}

    def latencies(self, pool: str, replicas: Collection[str]) -> Mapping[str, Latencies] | None:
        """Of those replicas, name → newest latencies; None where Redis cannot be read."""
        names = [*replicas]
        try:
            rows: Any = self._redis.hmget(_latencies_key(pool), names) if names else []
        except RedisError:
            return None
        found = zip(names, rows, strict=True)
        return {name: read for name, row in found if row and (read := _latencies(read_row(row))) is not None}

    def checked(self, pool: str) -> Mapping[str, Latencies]:
        """Replica → its latencies at the last self-check; empty where there is none, or Redis cannot be read."""
        rows = self._rows(_checked_key(pool)) or {}
        return {name: found for name, row in rows.items() if (found := _latencies(row)) is not None}

    def keep_checked(self, pool: str, found: Mapping[str, Latencies]) -> bool:
        """Instead of those of the last one; False where Redis did not take them, which makes a gap."""
        try:
            with self._redis.pipeline(transaction=True) as pipe:
                pipe.delete(_checked_key(pool))
                _replace(pipe, _checked_key(pool), {name: latencies_text(one) for name, one in found.items()}, gone=set())
                pipe.execute()
        except RedisError:
            return False
        return True

    def failures(self, pool: str) -> Mapping[str, Failure] | None:
        """Replica → why its last reading failed, for those whose last reading failed; None where Redis cannot be read."""
        rows = self._rows(_failures_key(pool))
        if rows is None:
            return None
        return {name: failure for name, row in rows.items() if (failure := _failure(row)) is not None}

    def _rows(self, key: str) -> dict[str, object] | None:
        try:
            return read_rows(self._redis, key)
        except RedisError:
            return None

    def _old(self, key: str, field: str, now: datetime) -> set[str]:
        return {name for name, row in read_rows(self._redis, key).items() if not _newer(row, field, now - KEEP)}


def read_rows(redis: Redis, key: str) -> dict[str, object]:
    """A hash of JSON values; a value that is no JSON is None. Entries under what can be nobody's name are left out."""
    found: Any = redis.hgetall(key)
    return {name: read_row(row) for name, row in ((as_text(key), row) for key, row in found.items()) if "\0" not in name}


def as_text(value: str | bytes) -> str:
    """Redis's answer as text, whether or not the client decodes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def read_time(value: object) -> datetime | None:
    """An ISO time with its offset, in UTC; None for anything else, and for one that UTC has no year for."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        return None if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def read_whole(value: object, most: int = 10**12) -> int | None:
    """A whole number from 0 to `most`; None for anything else."""
    return value if type(value) is int and 0 <= value <= most else None


def _replace(pipe: Any, key: str, rows: Mapping[str, str], *, gone: set[str]) -> None:
    if gone:
        pipe.hdel(key, *gone)
    if rows:
        pipe.hset(key, mapping=dict(rows))
        pipe.expire(key, KEEP)


def _loads_key(pool: str) -> str:
    return f"llmgw:loads:{pool}"


def _latencies_key(pool: str) -> str:
    return f"llmgw:latencies:{pool}"


def _checked_key(pool: str) -> str:
    return f"llmgw:self-check:{pool}"


def _failures_key(pool: str) -> str:
    return f"llmgw:load-failures:{pool}"


def _sample_json(sample: Sample) -> str:
    return json.dumps(
        {
            "in_flight": sample.in_flight,
            "sampled_at": sample.sampled_at.isoformat(),
            "output_tokens_total": sample.output_tokens_total,
        }
    )


def _latencies_json(sample: Sample) -> str | None:
    if not sample.latencies:
        return None
    return latencies_text(Latencies(at=sample.sampled_at, histograms=sample.latencies, counters=sample.counters))


def latencies_text(found: Latencies) -> str:
    rows = {name: [one.bounds, one.counts, one.count] for name, one in found.histograms.items()}
    document = {"at": found.at.isoformat(), "histograms": rows, "counters": dict(found.counters)}
    return json.dumps(document, separators=(",", ":"))


def _failure_json(skipped: Skipped, now: datetime) -> str:
    return json.dumps({"reason": skipped.reason, "at": now.isoformat()})


def _sample(row: object) -> Sample | None:
    sampled_at = read_time(row.get("sampled_at")) if isinstance(row, dict) else None
    if not isinstance(row, dict) or sampled_at is None:
        return None
    return Sample(
        in_flight=read_whole(row.get("in_flight")),
        sampled_at=sampled_at,
        output_tokens_total=read_whole(row.get("output_tokens_total"), MOST_TOKENS),
    )


def _latencies(row: object) -> Latencies | None:
    at = read_time(row.get("at")) if isinstance(row, dict) else None
    rows = row.get("histograms") if isinstance(row, dict) else None
    if at is None or not isinstance(rows, dict):
        return None
    names: tuple[Latency, ...] = get_args(Latency)
    return Latencies(
        at=at,
        histograms={n: found for n in names if (found := _histogram(rows.get(n))) is not None},
        counters=_counters(row.get("counters") if isinstance(row, dict) else None),
    )


def _counters(row: object) -> dict[Counter, int]:
    names: tuple[Counter, ...] = get_args(Counter)
    kept = row if isinstance(row, dict) else {}
    return {name: found for name in names if (found := read_whole(kept.get(name), MOST_TOKENS)) is not None}


def _histogram(row: object) -> Histogram | None:
    match row:
        case [[*bounds], [*counts], int(count)]:
            numbers = len(bounds) == len(counts) and all(type(bound) in (int, float) for bound in bounds)
            whole = all(read_whole(one, MOST_TOKENS) is not None for one in (*counts, count))
            if numbers and whole and _ascends(bounds) and all(a <= b for a, b in pairwise((*counts, count))):
                return Histogram(bounds=tuple(bounds), counts=tuple(counts), count=count)
    return None


def _ascends(bounds: Sequence[float]) -> bool:
    return all(lower < upper for lower, upper in pairwise(bounds))


def _failure(row: object) -> Failure | None:
    at = read_time(row.get("at")) if isinstance(row, dict) else None
    if not isinstance(row, dict) or at is None:
        return None
    return Failure(reason=str(row.get("reason")), at=at)


def _newer(row: object, field: str, than: datetime) -> bool:
    at = read_time(row.get(field)) if isinstance(row, dict) else None
    return at is not None and at > than


def read_row(row: str | bytes) -> object:
    """A JSON value; None for what is none, and for one with text in it that neither a page nor a database takes."""
    raw = row.encode("utf-8", "replace") if isinstance(row, str) else row
    try:
        document: object = json.loads(row)
        if b"\\ud" in raw.lower():
            json.dumps(document, ensure_ascii=False).encode()  # a half of a character: a ValueError
    except (ValueError, RecursionError):
        return None
    return None if b"\\u0000" in raw else document
