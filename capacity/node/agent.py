"""The host's node agent: does orders, looks at its engines about once a second, and reports.

It never touches the database, never restarts an engine by itself (the reconciler decides), and ends only what it
started. Its own end, however it comes, leaves the engines running.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from capacity.node import processes
from capacity.node.health import probe
from capacity.node.inventory import Hardware
from capacity.node.lifecycle import Act, Seen, Timing, step
from capacity.node.orders import Identity, Orders
from capacity.node.record import Record, Store
from capacity.node.replicas import Replicas, urls
from capacity.node.reporter import LogKeeper, Reporter
from capacity.node.start import Place
from capacity.node.templates import InvalidTemplates, Template, declared
from capacity.ports import NodeReport, Order, Outcome, ReplicaReport

TICK_SECONDS = 1.0
REPORT_SECONDS = 5.0
STOCK_SECONDS = 5.0
DEFAULT_TIMING = Timing()

log = logging.getLogger(__name__)

InFlight = Callable[[Sequence[str]], Mapping[str, int | None]]


def utc_now() -> datetime:
    """The present instant, UTC."""
    return datetime.now(UTC)


class NodeAgent:
    """`in_flight` asks engines at these URLs for their requests in flight: None where one does not say, never 0 for that."""

    def __init__(
        self,
        *,
        identity: Identity,
        store: Store,
        templates: Callable[[], Mapping[str, Template]],
        hardware: Hardware,
        place: Place,
        reporter: Reporter,
        in_flight: InFlight,
        timing: Timing = DEFAULT_TIMING,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._identity = identity
        self._hardware = hardware
        self._reporter = reporter
        self._in_flight = in_flight
        self._timing = timing
        self._clock = clock
        self._replicas = Replicas(store, clock)
        self._orders = Orders(
            identity=identity, replicas=self._replicas, templates=templates, hardware=hardware, place=place
        )  # fmt: skip
        self._log_keeper = LogKeeper(reporter, store.logs)
        self._wake = threading.Event()
        self._reported: NodeReport | None = None
        self._stock_at = clock()
        self._inventory = self._replicas.take_stock(hardware)
        self._templates = templates
        self._declared = self._read_templates({})

    def apply(self, order: Order) -> Outcome:
        """Do one order; any thread. What it changed is on disk before this returns."""
        outcome = self._orders.apply(order)
        self._wake.set()
        return outcome

    def run(self, stop: threading.Event) -> None:
        """Tick until `stop` is set; a tick that fails is logged and the next one tries again."""
        while not stop.is_set():
            try:
                self.tick(self._clock())
            except Exception:
                log.exception("A look at the engines failed.")
            self._wake.wait(TICK_SECONDS)
            self._wake.clear()

    def wake(self) -> None:
        """Let `run` look at once, or see that it is to stop."""
        self._wake.set()

    def tick(self, now: datetime) -> None:
        """One look at every engine, what follows from it, and a report where something changed or 5 s have passed."""
        with self._replicas.lock:
            asked = [record for record in self._replicas.holding() if not record.ending_since]
        # Engines are asked without the lock: a slow one must not hold up an order.
        healthy = probe([_health_url(record) for record in asked])
        draining = urls(record for record in asked if record.state == "draining")
        in_flight = self._in_flight(draining) if draining else {}
        with self._replicas.lock:
            for record in self._replicas.all():
                self._look(record, healthy, in_flight, now)
            if abs(now - self._stock_at) >= timedelta(seconds=STOCK_SECONDS):
                self._inventory, self._stock_at = self._replicas.take_stock(self._hardware), now
                self._declared = self._read_templates(self._declared)
            report = self.report(now)
            logs = {record.name: self._replicas.log_path(record.name) for record in self._replicas.all()}
        self._publish(report)
        self._log_keeper.tend(logs, now)

    def report(self, now: datetime) -> NodeReport:
        """This host as it is known now."""
        with self._replicas.lock:
            fence = self._replicas.fence(self._identity.pool)
            return NodeReport(
                node=self._identity.node,
                pool=self._identity.pool,
                at=now,
                resources=dict(self._inventory.offered),
                foreign=dict(self._inventory.foreign),
                replicas=tuple(_reported(record) for record in self._replicas.all()),
                labels={**self._inventory.labels, **self._identity.labels},
                shown=self._inventory.shown,
                devices=self._inventory.reported_devices,
                generation=fence.generation,
                installation=fence.installation,
                unknown_products=self._inventory.unknown_products,
                foreign_devices=self._inventory.foreign_devices,
                templates=self._declared,
            )

    def end_all(self, wait: Callable[[float], object]) -> None:
        """End every engine of this node and wait until they are gone (at most the kill time and a few looks)."""
        with self._replicas.lock:
            for record in self._replicas.holding():
                if not record.ending_since:
                    self._replicas.end(replace(record, state="draining", since=self._clock()))
        deadline = self._clock() + timedelta(seconds=self._timing.kill_after_seconds + 5)
        while self._replicas.holding() and self._clock() < deadline:
            wait(0.1)
            self.tick(self._clock())

    def close(self) -> None:
        """Give the state folder free. Engines run on."""
        self._replicas.close()

    def _read_templates(self, last: Mapping[str, Mapping[str, bool]]) -> Mapping[str, Mapping[str, bool]]:
        """Template → parameter → whether an order must give it; as last read where the file is being edited or is refused."""
        try:
            return declared(self._templates())
        except InvalidTemplates as error:
            if last:
                log.warning("%s The report names the templates as they were last read.", error)
            return last

    def _look(self, record: Record, healthy: Mapping[str, bool], in_flight: Mapping[str, int | None], now: datetime) -> None:
        life = processes.look(record.pid, record.birth) if record.holds and record.pid else processes.Ended(None)
        seen = Seen(
            alive=isinstance(life, processes.Alive),
            healthy=healthy.get(_health_url(record)),
            in_flight=in_flight.get(record.url or ""),
        )
        changed, watch, act = step(record, self._replicas.watch(record.name), seen, now, self._timing)
        self._replicas.keep_watch(record.name, watch)
        if changed != record:
            log.info("%s is %s.", changed.name, changed.state)
            self._replicas.keep(changed)
        self._act(changed, act, life)

    def _act(self, record: Record, act: Act, life: processes.Alive | processes.Ended) -> None:
        if act == "terminate":
            self._replicas.end(record)
        elif act == "kill" and record.pid:
            processes.end(record.pid, record.birth, force=True)
        elif act == "gone":
            self._replicas.forget(record)
        elif act == "exited":
            self._replicas.bury(record, life.exit_code if isinstance(life, processes.Ended) else None)

    def _publish(self, report: NodeReport) -> None:
        last = self._reported
        same = last is not None and replace(report, at=last.at) == last
        if last and same and timedelta(0) <= report.at - last.at < timedelta(seconds=REPORT_SECONDS):
            return
        self._reported = report if self._reporter.report(report) else None


def _health_url(record: Record) -> str:
    return f"{record.url}{record.health}"


def _reported(record: Record) -> ReplicaReport:
    return ReplicaReport(
        name=record.name,
        model=record.model,
        profile=record.profile,
        nodes=record.nodes,
        resource=record.resource,
        units=record.units,
        state=record.state,
        since=record.since,
        url=record.url if record.holds else None,
        generation=record.generation,
        devices=record.devices,
        fingerprint=record.fingerprint,
        was_ready=record.was_ready,
        exit_code=record.exit_code,
        message=record.message,
    )
