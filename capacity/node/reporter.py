"""What a host tells: its report and the ends of its logs, into Redis. Without Redis nothing is lost but being seen."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from capacity.drivers.wire import HEARD_KEY, LOG_KEY, REPORTING_KEY, REPORTS_KEY, report_to_json
from capacity.node import logs
from capacity.ports import NodeReport

LOG_EXPIRES_SECONDS = 86_400
TAIL_SECONDS = 5.0
UNHEARD_SECONDS = 60

AWAY = (
    "Redis cannot be reached at %s (%s). It is the control plane's: name it by REDIS_URL=redis://…, or by LLMGW_VAR=… "
    "(make: VAR=…) the state folder of the `make run` on this host. Engines run on, reports wait, and it is tried again."
)

log = logging.getLogger(__name__)


def where(client: Redis) -> str:
    """Host and port, or the socket's path; never its password."""
    known = client.connection_pool.connection_kwargs
    return str(known.get("path") or f"{known.get('host', 'localhost')}:{known.get('port', 6379)}")


def said_already(record: logging.LogRecord) -> bool:
    """A filter for Celery's log: that its broker is away, which is the same Redis, is said here, once and not at each try."""
    return not str(record.msg).startswith("consumer: Cannot connect")


class Reporter:
    """`redis` must give up within a second or two (timeouts, no backing off), since the agent waits for it."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._away = False
        self._unheard_since: datetime | None = None
        self._has_warned = False

    def report(self, report: NodeReport) -> bool:
        """Replace this node's last report, which then stays until the next; False when Redis cannot be reached."""
        return self._reached(lambda: self._listen(report, self._put(report)))

    def _put(self, report: NodeReport) -> bool:
        """Whether passes of its pool are asked for."""
        pipe = self._redis.pipeline(transaction=False)
        pipe.hset(REPORTS_KEY.format(pool=report.pool), report.node, json.dumps(report_to_json(report)))
        pipe.hset(REPORTING_KEY, report.pool, report.at.isoformat())
        pipe.exists(HEARD_KEY.format(pool=report.pool))
        return bool(pipe.execute()[-1])

    def _listen(self, report: NodeReport, is_heard: bool) -> None:
        """A worker knows no pools: a name that is misspelt shows in that nobody listens. Said once."""
        if is_heard:
            if self._has_warned:
                log.warning("A pass listens for pool %s now.", report.pool)
            self._unheard_since, self._has_warned = None, False
            return
        self._unheard_since = self._unheard_since or report.at
        if not self._has_warned and report.at - self._unheard_since >= timedelta(seconds=UNHEARD_SECONDS):
            log.warning("No pass listens for pool %s: is its name right, and does the control plane run?", report.pool)
            self._has_warned = True

    def tail(self, replica: str, text: str) -> bool:
        """Keep the end of a replica's log for a day; not even tried while reports do not get through."""
        if self._away:  # many logs, each waiting for its timeout, would hold up the looking
            return False
        content = text.encode(errors="replace")
        return self._reached(lambda: self._redis.set(LOG_KEY.format(replica=replica), content, ex=LOG_EXPIRES_SECONDS))

    def _reached(self, call: Callable[[], object]) -> bool:
        try:
            call()
        except (RedisError, OSError) as error:
            if not self._away:  # said once an outage
                log.warning(AWAY, where(self._redis), type(error).__name__)
            self._away = True
            return False
        if self._away:
            log.warning("Redis is reached again.")
        self._away = False
        return True


class LogKeeper:
    """Keeps logs within their bound, and their ends where the page of a replica finds them."""

    def __init__(self, reporter: Reporter, folder: Path) -> None:
        self._reporter = reporter
        self._folder = folder
        self._told: dict[str, str] = {}
        self._told_at: datetime | None = None

    def tend(self, paths: Mapping[str, Path], now: datetime) -> None:
        """`paths`: replica → log. Cuts at each call; tells what changed at most each 5 s."""
        for path in paths.values():
            logs.bound(path)
        if self._told_at is not None and abs(now - self._told_at) < timedelta(seconds=TAIL_SECONDS):
            return
        self._told_at = now
        logs.prune(self._folder, set(paths.values()))
        self._told = {name: self._tell(name, path) for name, path in paths.items()}

    def _tell(self, name: str, path: Path) -> str:
        text, told = logs.tail(path), self._told.get(name, "")
        return text if text == told or self._reporter.tail(name, text) else told
