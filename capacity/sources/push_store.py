"""The newest push of every gateway, and the last arrival of every model, in Redis."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from redis import Redis
from redis.exceptions import RedisError, ResponseError

from capacity.sources.gateway import FORGET_AFTER_SECONDS, ModelPush, Push
from capacity.sources.store import as_text, read_row, read_rows, read_time, read_whole

KEEP = timedelta(hours=1)  # beyond the time for which a silent source is missed
MAX_SOURCES = 1_000
MAX_MODELS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """All that is remembered of a pool's gateways: what `combine` takes as `pushes` and `kept_arrivals`."""

    pushes: tuple[Push, ...]
    arrivals: Mapping[str, datetime]


class PushStore:
    """A hash a pool (source → its newest push), the sources by time, and the models by last arrival, which only moves on."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def taken_by(self, pool: str, source: str, now: datetime) -> str | None:
        """The account whose pushes under that source count for something yet; empty: nobody's, None: Redis is away."""
        try:
            row: Any = self._redis.hget(_pushes_key(pool), source)
        except RedisError:
            return None
        push = _push(source, read_row(row)) if row is not None else None
        counts = push and (push.replicas or push.models) and now - push.at <= timedelta(seconds=FORGET_AFTER_SECONDS)
        return push.account if push and counts else ""

    def ignored(self, pool: str) -> Mapping[str, int]:
        """Source → how many names its pushes had that the pool did not have; none where Redis is away."""
        try:
            found: Any = self._redis.hgetall(_ignored_key(pool))
        except RedisError:
            return {}
        counts = {as_text(source): read_whole(read_row(count)) for source, count in found.items()}
        return {source: count for source, count in counts.items() if count is not None and "\0" not in source}

    def push(self, pool: str, push: Push, ignored: int = 0) -> bool:
        """Record a push in place of the source's last one; False where Redis did not take it.

        Sources unheard for an hour go, and the longest unheard where there are more than MAX_SOURCES."""
        try:
            gone = self._outdated(pool, push)
            with self._redis.pipeline(transaction=True) as pipe:
                if gone:
                    pipe.hdel(_pushes_key(pool), *gone)
                    pipe.zrem(_sources_key(pool), *gone)
                    pipe.hdel(_ignored_key(pool), *gone)
                pipe.hset(_pushes_key(pool), push.source, _json(push))
                pipe.zadd(_sources_key(pool), {push.source: push.at.timestamp()})
                _record_arrivals(pipe, _arrivals_key(pool), push)
                pipe.execute()
            self._count_ignored(_ignored_key(pool), push.source, ignored)
        except RedisError:
            return False
        return True

    def _count_ignored(self, key: str, source: str, ignored: int) -> None:
        """By itself: a count that is none any more starts anew, and keeps no push from being taken."""
        try:
            self._redis.hincrby(key, source, ignored)
        except ResponseError:
            self._redis.hset(key, source, str(ignored))

    def read(self, pool: str) -> Pushed | None:
        """All that is remembered; None where Redis cannot be read (held requests are then unknown)."""
        try:
            rows = read_rows(self._redis, _pushes_key(pool))
            found: Any = self._redis.zrange(_arrivals_key(pool), 0, -1, withscores=True)
        except RedisError:
            return None
        pushes = [_push(source, row) for source, row in rows.items()]
        return Pushed(
            pushes=tuple(push for push in pushes if push is not None),
            arrivals={as_text(model): at for model, score in found if (at := _instant(score)) is not None},
        )

    def _outdated(self, pool: str, push: Push) -> set[str]:
        key = _sources_key(pool)
        unheard: Any = self._redis.zrangebyscore(key, "-inf", (push.at - KEEP).timestamp())
        too_many: Any = self._redis.zrange(key, 0, -MAX_SOURCES)  # all but the MAX_SOURCES - 1 newest: room for this one
        return {as_text(source) for source in [*unheard, *too_many]} - {push.source}


def _record_arrivals(pipe: Any, key: str, push: Push) -> None:
    arrivals = {
        model: said.last_arrival_at.timestamp() for model, said in push.models.items() if said.last_arrival_at is not None
    }
    if arrivals:
        pipe.zadd(key, arrivals, gt=True)
        pipe.zremrangebyrank(key, 0, -MAX_MODELS - 1)


def _pushes_key(pool: str) -> str:
    return f"llmgw:pushes:{pool}"


def _sources_key(pool: str) -> str:
    return f"llmgw:push-sources:{pool}"


def _ignored_key(pool: str) -> str:
    return f"llmgw:push-ignored:{pool}"


def _arrivals_key(pool: str) -> str:
    return f"llmgw:arrivals:{pool}"


def _json(push: Push) -> str:
    models = {
        name: {"held": said.held, "last_arrival_at": said.last_arrival_at.isoformat() if said.last_arrival_at else None}
        for name, said in push.models.items()
    }
    return json.dumps(
        {
            "at": push.at.isoformat(),
            "replicas": dict(push.replicas),
            "models": models,
            "account": push.account,
            "unknown": list(push.unknown),
        }
    )


def _push(source: str, row: object) -> Push | None:
    """A row of ours; None where it is none (a broken row is left out and hurts no other)."""
    try:
        return _read_push(source, row)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _instant(score: float) -> datetime | None:
    """Seconds since 1970 → an instant; None where no clock has ever shown it."""
    try:
        return datetime.fromtimestamp(score, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _count(value: object) -> int:
    found = read_whole(value)
    if found is None:
        raise ValueError("no count")
    return found


def _read_push(source: str, row: Any) -> Push:
    models = {
        name: ModelPush(
            held=None if said["held"] is None else _count(said["held"]), last_arrival_at=read_time(said["last_arrival_at"])
        )
        for name, said in row["models"].items()
    }
    at = read_time(row["at"])
    if at is None:
        raise ValueError("no time")
    return Push(
        source=source,
        at=at,
        replicas={name: _count(in_flight) for name, in_flight in row["replicas"].items()},
        models=models,
        account=str(row.get("account", "")),
        unknown=tuple(map(str, row.get("unknown", ()))),
    )
