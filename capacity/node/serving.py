"""Which agent this process serves. A web or reconciler process serves none and so applies nothing."""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import Protocol

from capacity.drivers.wire import order_from_json
from capacity.ports import Order, Outcome

log = logging.getLogger(__name__)


class Agent(Protocol):
    def apply(self, order: Order) -> Outcome:
        """Do an order, or say why not."""


_agent: Agent | None = None


def serve(agent: Agent | None) -> None:
    """Let the tasks of this process go to `agent` (None: to nobody)."""
    global _agent
    _agent = agent


def apply_document(document: object) -> dict[str, object]:
    """A JSON order → its outcome as JSON; never raises for a bad document."""
    outcome = _apply(document)
    if outcome.kind != "accepted":
        log.warning("Order %s: %s", outcome.kind, outcome.message)
    return asdict(outcome)


def _apply(document: object) -> Outcome:
    if _agent is None:
        return Outcome(kind="refused", message="No node agent runs in this process.")
    try:
        order = order_from_json(document)
    except ValueError as error:
        return Outcome(kind="refused", message=f"The order cannot be read: {error}.")
    return _agent.apply(order)
