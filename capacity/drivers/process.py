"""The control side of the process driver: orders go to a host's Celery queue, reports come out of Redis.

More hosts need no more than Redis in reach. Nothing here blocks on a host: an order is accepted once it is queued, and
what became of it is read in the next report.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
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
        self._faults: dict[str, dict[str, str]] = {}

    def observe(self, pool: str) -> Sequence[NodeReport] | None:
        """The last report of each node, sorted by node, however old; None when Redis cannot be read.

        A row that cannot be understood is left out, and `unreadable` says why: that node then looks absent, never empty.
        """
        try:
            rows = self._redis.hgetall(REPORTS_KEY.format(pool=pool))
        except (RedisError, OSError) as error:
            log.warning("Reports of pool %r cannot be read: %s.", pool, type(error).__name__)
            return None
        read = {_decoded(node): _parse(pool, _decoded(node), row) for node, row in rows.items()}
        self._remember(pool, {node: found for node, found in read.items() if isinstance(found, str)})
        return sorted((found for found in read.values() if not isinstance(found, str)), key=lambda report: report.node)

    def unreadable(self, pool: str) -> Mapping[str, str]:
        """Node → what was wrong with its report at the last `observe` of the pool."""
        return self._faults.get(pool, {})

    def _remember(self, pool: str, faults: dict[str, str]) -> None:
        """Each fault is logged when it comes, not in every pass that meets it."""
        known = self._faults.get(pool, {})
        for node, fault in faults.items():
            if known.get(node) != fault:
                log.warning("The report of node %r in pool %r is skipped: %s.", node, pool, fault)
        self._faults[pool] = faults

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
    found = _parse(pool, node, row) if isinstance(row, bytes | str) else None
    return found if isinstance(found, NodeReport) else None


def _decoded(value: bytes | str) -> str:
    """A node as it is named in Redis, so that it can be shown and stored whatever it is."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    return text.replace("\0", "\ufffd")


def _parse(pool: str, node: str, row: bytes | str) -> NodeReport | str:
    """The report, or what is wrong with it."""
    try:
        if len(row) > _MAX_ROW_BYTES:
            return f"the row has more than {_MAX_ROW_BYTES} bytes"
        report = report_from_json(json.loads(row))
    except (ValueError, RecursionError) as error:  # JSON and Unicode errors are ValueErrors
        return str(error)[:200]
    return report if (report.node, report.pool) == (node, pool) else "the report names another node or pool"
