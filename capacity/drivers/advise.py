"""A driver that accepts nothing and only says what it was asked: the advice before anybody trusts the reconciler."""

from __future__ import annotations

from collections.abc import Sequence

from capacity.ports import FleetDriver, NodeReport, Order, Outcome


class AdviseDriver:
    """Observes through another driver, refuses every order, and keeps what it refused in `said`."""

    def __init__(self, observed: FleetDriver) -> None:
        self._observed = observed
        self.said: list[Order] = []

    def observe(self, pool: str) -> Sequence[NodeReport] | None:
        """What the other driver sees."""
        return self._observed.observe(pool)

    def apply(self, order: Order) -> Outcome:
        """Refused, with a sentence that names the order."""
        self.said.append(order)
        where = f" on {', '.join(order.nodes)}" if order.nodes else ""
        return Outcome(kind="refused", message=f"Advice only: would {order.op} {order.replica}{where}.")
