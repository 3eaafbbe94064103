"""The control side of the process driver: orders go to a host's Celery queue, reports come out of Redis.

More hosts need no more than Redis in reach. Nothing here blocks on a host: an order is accepted once it is queued, and
what became of it is read in the next report.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any, Protocol

from redis import Redis
from redis.exceptions import RedisError

from capacity.drivers.wire import REPORTS_KEY, TASK_NAME, order_to_json, queue_of, report_from_json
from capacity.ports import NodeReport, Order, Outcome

ORDER_EXPIRES_SECONDS = 60
_MAX_ROW_BYTES = 4_000_000

log = logging.getLogger(__name__)


class Send(Protocol):
    def __call__(self, task_name: str, kwargs: dict[str, Any], queue: str, expires: int) -> object:
        """Queue one Celery task; may raise anything."""


class ProcessDriver:
    """A FleetDriver over node workers. `redis` must give up within a few seconds (timeouts, no backing off): a pass waits."""

    def __init__(self, *, redis: Redis, send: Send) -> None:
        self._redis = redis
        self._send = send

    def observe(self, pool: str) -> Sequence[NodeReport] | None:
        """The last report of each node, sorted by node, however old; None when Redis cannot be read.

        A row that cannot be understood is logged and left out: that node then looks absent, never empty.
        """
        try:
            rows = self._redis.hgetall(REPORTS_KEY.format(pool=pool))
        except (RedisError, OSError) as error:
            log.warning("Reports of pool %r cannot be read: %s.", pool, type(error).__name__)
            return None
        reports = [_parse(pool, _decoded(node), row) for node, row in rows.items()]
        return sorted((report for report in reports if report is not None), key=lambda report: report.node)

    def apply(self, order: Order) -> Outcome:
        """Queue an order on its host; accepted once queued. It dies in the queue after 60 s."""
        if len(order.nodes) != 1:
            return Outcome(
                kind="refused",
                message=f"The process driver runs a replica on exactly one host, and {order.replica} names {len(order.nodes)}.",
            )
        queue = queue_of(order.nodes[0])
        try:
            self._send(TASK_NAME, {"order": order_to_json(order)}, queue, ORDER_EXPIRES_SECONDS)
        except Exception as error:  # whatever the broker's client raises is an outcome on this side of the border
            return Outcome(
                kind="failed", retryable=True, message=f"The order could not be queued on {queue} ({type(error).__name__})."
            )
        return Outcome(kind="accepted", message=f"Queued on {queue}.")


def read_report(redis: Redis, pool: str, node: str) -> NodeReport | None:
    """The last report of one node; None where there is none, or where it or Redis cannot be read."""
    try:
        row = redis.hget(REPORTS_KEY.format(pool=pool), node)
    except (RedisError, OSError):
        return None
    return _parse(pool, node, row) if isinstance(row, bytes | str) else None


def _decoded(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _parse(pool: str, node: str, row: bytes | str) -> NodeReport | None:
    try:
        if len(row) > _MAX_ROW_BYTES:
            raise ValueError(f"the row has more than {_MAX_ROW_BYTES} bytes")
        report = report_from_json(json.loads(row))
        if (report.node, report.pool) != (node, pool):
            raise ValueError("the report names another node or pool")
    except (ValueError, RecursionError) as error:  # JSON and Unicode errors are ValueErrors
        log.warning("The report of node %r in pool %r is skipped: %s.", node, pool, error)
        return None
    return report
