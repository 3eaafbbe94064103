"""What a host tells: its report and the ends of its logs, into Redis. Without Redis nothing is lost but being seen."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

from redis import Redis
from redis.exceptions import RedisError

from capacity.drivers.wire import LOG_KEY, REPORTS_KEY, report_to_json
from capacity.ports import NodeReport

LOG_EXPIRES_SECONDS = 86_400

log = logging.getLogger(__name__)


class Reporter:
    """`redis` must have socket timeouts of a second or two, since the agent waits for it."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._away = False

    def report(self, report: NodeReport) -> bool:
        """Replace this node's last report, which then stays until the next; False when Redis cannot be reached."""
        row = json.dumps(report_to_json(report))
        return self._reached(lambda: self._redis.hset(REPORTS_KEY.format(pool=report.pool), report.node, row))

    def tail(self, replica: str, text: str) -> bool:
        """Keep the end of a replica's log for a day."""
        content = text.encode(errors="replace")
        return self._reached(lambda: self._redis.set(LOG_KEY.format(replica=replica), content, ex=LOG_EXPIRES_SECONDS))

    def _reached(self, call: Callable[[], object]) -> bool:
        try:
            call()
        except (RedisError, OSError) as error:
            if not self._away:  # said once an outage
                log.warning("Redis cannot be reached (%s); engines run on, reports wait.", type(error).__name__)
            self._away = True
            return False
        if self._away:
            log.warning("Redis is reached again.")
        self._away = False
        return True
