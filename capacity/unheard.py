"""Hosts that report for a pool that no control plane has: a misspelt `--pool` is named, and costs a pass nothing."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from redis import Redis
from redis.exceptions import RedisError

from .drivers.wire import HEARD_KEY, REPORTING_KEY
from .store import redis_client

FRESH = timedelta(seconds=60)
HEARD_SECONDS = 60
HEARD_INTERVALS = 4
SAID_KEY = "llmgw:unheard-said:{pool}"
SAID_SECONDS = 3600
MOST = 20

log = logging.getLogger(__name__)


def listen(redis: Redis, pools: Collection[str], pass_seconds: int, now: datetime) -> None:
    """Tell the hosts of these pools that they are heard, and the log, once an hour, of those that nobody hears. Never raises
    for a Redis that is away."""
    try:
        pipe = redis.pipeline(transaction=False)
        for pool in pools:
            pipe.set(HEARD_KEY.format(pool=pool), now.isoformat(), ex=max(HEARD_SECONDS, HEARD_INTERVALS * pass_seconds))
        pipe.execute()
        for pool in unheard(redis, now):
            if redis.set(SAID_KEY.format(pool=pool), "", ex=SAID_SECONDS, nx=True):
                log.warning("A host reports for pool %r, which there is not: its node worker has another --pool.", pool)
    except (RedisError, OSError) as error:
        log.warning("Hosts cannot be told that they are heard: %s.", type(error).__name__)


def unheard(redis: Redis, now: datetime) -> Sequence[str]:
    """The pools that hosts reported for within the last minute and of which no control plane at this Redis asks for passes;
    twenty at most, by name. `RedisError` where it is away."""
    rows = redis.hgetall(REPORTING_KEY)
    names = sorted(_text(name) for name, at in rows.items() if _is_fresh(_text(at), now))[:MOST]  # type: ignore[union-attr]
    heard = redis.mget([HEARD_KEY.format(pool=name) for name in names]) if names else []
    return [name for name, there in zip(names, heard, strict=True) if there is None]  # type: ignore[arg-type]


def unheard_if_known(now: datetime) -> Sequence[str] | None:
    """The same by the site's own Redis; None where it does not answer."""
    try:
        return unheard(redis_client(), now)
    except (RedisError, OSError):
        return None


def _text(raw: bytes | str) -> str:
    return raw.decode(errors="replace") if isinstance(raw, bytes) else raw


def _is_fresh(at: str, now: datetime) -> bool:
    try:
        return abs(now - datetime.fromisoformat(at)) <= FRESH
    except (ValueError, TypeError, OverflowError):
        return False
