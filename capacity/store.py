"""The one place that makes the Redis client: short timeouts, so that nobody waits for a store that is away."""

from __future__ import annotations

from functools import lru_cache

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from capacity.drivers.wire import LOG_KEY

CONNECT_SECONDS = 1
READ_SECONDS = 2


def redis_client() -> redis.Redis:
    """A client of `settings.REDIS_URL`, shared by the threads of this process. It connects at the first command."""
    return _client(settings.REDIS_URL)


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    # one more try at once: after a restart of the server the pooled connections are dead and the next one is good
    return redis.Redis.from_url(
        url, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=READ_SECONDS, retry=Retry(NoBackoff(), 1)
    )


def beat_key() -> str:
    """Of this installation: another's heartbeat at the same Redis is not ours."""
    return f"llmgw:beat:{settings.INSTALLATION_ID}"


def read_log(replica: str) -> str | None:
    """The end of a replica's log as its host last wrote it; None where there is none or Redis cannot be read."""
    try:
        content = redis_client().get(LOG_KEY.format(replica=replica))
    except RedisError:
        return None
    return content.decode(errors="replace") if isinstance(content, bytes) else None
