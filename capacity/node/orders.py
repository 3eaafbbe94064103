"""Orders of the reconciler, done on this host. The same order twice is done once; one that is outdated is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from capacity.node import processes
from capacity.node.inventory import Hardware, NoRoom
from capacity.node.lifecycle import state_when_taken_back
from capacity.node.parameters import Refused
from capacity.node.record import Record
from capacity.node.replicas import Replicas
from capacity.node.start import Place, prepared, record_of
from capacity.node.templates import Command, InvalidTemplates, Template
from capacity.ports import Order, Outcome

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which node this is, of which pool, and the labels that profiles may ask for."""

    node: str
    pool: str
    labels: Mapping[str, str]


class Orders:
    """Does orders over the replicas of this host."""

    def __init__(
        self,
        *,
        identity: Identity,
        replicas: Replicas,
        templates: Callable[[], Mapping[str, Template]],
        hardware: Hardware,
        place: Place,
    ) -> None:
        self._identity = identity
        self._replicas = replicas
        self._templates = templates
        self._hardware = hardware
        self._place = place
        self._ops = {"start": self._start, "drain": self._drain, "undrain": self._undrain, "cancel": self._cancel}

    def apply(self, order: Order) -> Outcome:
        """Do one order; any thread. What it changed is on disk before this returns."""
        with self._replicas.lock:
            refusal = self._refusal(order)
            if refusal:
                return Outcome(kind="refused", message=refusal)
            try:
                self._replicas.let_through(order)
            except OSError as error:  # without that on disk an older order could pass after a restart
                return Outcome(kind="failed", retryable=True, message=f"The state folder cannot be written: {error.strerror}.")
            return self._ops[order.op](order)

    def _refusal(self, order: Order) -> str:
        if order.pool != self._identity.pool:
            return f"{self._identity.node} belongs to pool {self._identity.pool}, not to {order.pool}."
        if order.nodes != (self._identity.node,):
            return f"The order for {order.replica} is not for {self._identity.node} alone."
        return self._replicas.fence(order.pool).refusal(order)

    def _start(self, order: Order) -> Outcome:
        known = self._replicas.get(order.replica)
        if known and known.state == "draining":
            return Outcome(kind="failed", retryable=True, message=f"{order.replica} is draining; undrain takes it back.")
        if known and known.holds:
            return Outcome(kind="accepted", message=f"{order.replica} is {known.state} already.")
        if known and order.generation <= known.generation:
            return Outcome(kind="failed", message=f"{order.replica} was started by this order and has exited.")
        try:
            intent, command = self._prepared(order)
            self._replicas.intend(intent)
        except (Refused, InvalidTemplates) as error:
            return self._not_started(order, "refused", str(error))
        except (NoRoom, OSError) as error:
            return self._not_started(order, "failed", str(error))
        return self._spawn(order, intent, command)

    def _prepared(self, order: Order) -> tuple[Record, Command]:
        return prepared(
            order,
            templates=self._templates(),
            inventory=self._replicas.take_stock(self._hardware),
            holding=self._replicas.holding(),
            place=self._place,
            now=self._replicas.now(),
        )

    def _spawn(self, order: Order, intent: Record, command: Command) -> Outcome:
        """The intent is on disk: a crash from here on is found again by its token, or is as if it had not been asked."""
        environment = processes.environment_of(intent.token, command.environment, intent.devices)
        output = self._replicas.log_path(intent.name)
        try:
            pid, birth = processes.spawn(command.arguments, directory=command.directory, environment=environment, output=output)
        except (OSError, ValueError) as error:
            return self._not_started(order, "failed", f"{command.arguments[0]} cannot be started: {error}")
        self._replicas.keep(replace(intent, pid=pid, birth=birth))
        log.info("Started %s with pid %s on port %s.", intent.name, pid, intent.port)
        return Outcome(kind="accepted")

    def _not_started(self, order: Order, kind: Literal["refused", "failed"], message: str) -> Outcome:
        """Nobody waits for this outcome at the other end of a queue, so the report shows it as a start that exited."""
        self._replicas.keep(record_of(order, state="exited", since=self._replicas.now(), message=message))
        return Outcome(kind=kind, retryable=kind == "failed", message=message)

    def _drain(self, order: Order) -> Outcome:
        record = self._replicas.get(order.replica)
        if record is None or not record.holds:
            return Outcome(kind="accepted", message=f"{order.replica} is gone already.")
        if record.state == "starting":
            return self._cancel(order)
        if record.state != "draining":
            self._replicas.keep(self._changed(record, order, "draining"))
        return Outcome(kind="accepted")

    def _undrain(self, order: Order) -> Outcome:
        record = self._replicas.get(order.replica)
        if record is None or not record.holds:
            return Outcome(kind="failed", message=f"{order.replica} is gone already.")
        if record.ending_since:
            return Outcome(kind="failed", message=f"{order.replica} is ending already.")
        if record.state == "draining":
            self._replicas.keep(self._changed(record, order, state_when_taken_back(self._replicas.watch(record.name))))
        return Outcome(kind="accepted")

    def _cancel(self, order: Order) -> Outcome:
        record = self._replicas.get(order.replica)
        if record is None or not record.holds:
            return Outcome(kind="accepted", message=f"{order.replica} is gone already.")
        if record.state in ("ready", "unready"):  # it may serve: what was decided about a starting one is outdated
            return Outcome(kind="refused", message=f"{order.replica} is {record.state} by now; only a drain ends it.")
        if record.state == "starting":
            self._replicas.end(self._changed(record, order, "draining"))
        return Outcome(kind="accepted")

    def _changed(self, record: Record, order: Order, state: Literal["ready", "unready", "draining"]) -> Record:
        return replace(
            record,
            state=state,
            since=self._replicas.now(),
            generation=order.generation,
            drain_timeout_seconds=order.drain_timeout_seconds,
        )
