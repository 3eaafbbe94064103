"""The host's node agent: does orders, looks at its engines about once a second, and reports.

It never touches the database, never restarts an engine by itself (the reconciler decides), and ends only what it
started. Its own end, however it comes, leaves the engines running.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from capacity.node import logs, processes
from capacity.node.health import probe
from capacity.node.inventory import Hardware, Inventory, NoRoom
from capacity.node.lifecycle import Act, Seen, Timing, Watch, state_when_taken_back, step
from capacity.node.parameters import Refused
from capacity.node.record import Record, Store
from capacity.node.reporter import Reporter
from capacity.node.start import Place, prepared, record_of
from capacity.node.templates import Command, InvalidTemplates, Template
from capacity.ports import NodeReport, Order, Outcome, ReplicaReport

TICK_SECONDS = 1.0
REPORT_SECONDS = 5.0
STOCK_SECONDS = 5.0
TAIL_SECONDS = 5.0

log = logging.getLogger(__name__)

InFlight = Callable[[Sequence[str]], Mapping[str, int | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which node this is, of which pool, and the labels that profiles may ask for."""

    node: str
    pool: str
    labels: Mapping[str, str]


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
        timing: Timing | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._identity = identity
        self._store = store
        self._templates = templates
        self._hardware = hardware
        self._place = place
        self._reporter = reporter
        self._in_flight = in_flight
        self._timing = timing or Timing()
        self._clock = clock
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._generations = store.generations()
        self._records = self._adopted(store.load())
        self._watches: dict[str, Watch] = {}
        self._tails: dict[str, str] = {}
        self._reported: NodeReport | None = None
        self._tails_at = datetime.min.replace(tzinfo=UTC)
        self._stock_at = clock()
        self._inventory = self._take_stock()

    # Orders

    def apply(self, order: Order) -> Outcome:
        """Do one order; any thread. What it changed is on disk before this returns."""
        with self._lock:
            refusal = self._refusal(order)
            if refusal:
                return Outcome(kind="refused", message=refusal)
            self._raise_generation(order)
            outcome = {"start": self._start, "drain": self._drain, "undrain": self._undrain, "cancel": self._cancel}[order.op](
                order
            )
        self._wake.set()
        return outcome

    def _refusal(self, order: Order) -> str:
        highest = self._generations.get(order.pool, 0)
        if order.pool != self._identity.pool:
            return f"{self._identity.node} belongs to pool {self._identity.pool}, not to {order.pool}."
        if order.nodes != (self._identity.node,):
            return f"The order for {order.replica} is not for {self._identity.node} alone."
        if order.generation < highest:
            return f"Generation {order.generation} is older than {highest}, which this host has seen."
        return ""

    def _raise_generation(self, order: Order) -> None:
        if order.generation > self._generations.get(order.pool, 0):
            self._generations[order.pool] = order.generation
            self._store.save_generations(self._generations)

    def _start(self, order: Order) -> Outcome:
        known = self._records.get(order.replica)
        if known and known.state == "draining":
            return Outcome(kind="failed", retryable=True, message=f"{order.replica} is draining; undrain takes it back.")
        if known and known.holds:
            return Outcome(kind="accepted", message=f"{order.replica} is {known.state} already.")
        if known and order.generation <= known.generation:
            return Outcome(kind="failed", message=f"{order.replica} was started by this order and has exited.")
        try:
            self._inventory = self._take_stock()
            intent, command = prepared(
                order, templates=self._templates(), inventory=self._inventory,
                records=self._records.values(), place=self._place, now=self._clock(),
            )  # fmt: skip
            self._store.save(intent)
        except (Refused, InvalidTemplates) as error:
            return self._not_started(order, "refused", str(error))
        except (NoRoom, OSError) as error:
            return self._not_started(order, "failed", str(error))
        return self._spawn(order, intent, command)

    def _spawn(self, order: Order, intent: Record, command: Command) -> Outcome:
        """The intent is on disk: a crash from here on is found again by its token, or is as if it had not been asked."""
        environment = processes.environment_of(intent.token, command.environment, intent.devices)
        output = self._store.log_path(intent.name)
        try:
            pid, birth = processes.spawn(command.arguments, directory=command.directory, environment=environment, output=output)
        except (OSError, ValueError) as error:
            return self._not_started(order, "failed", f"{command.arguments[0]} cannot be started: {error}")
        self._watches.pop(intent.name, None)
        self._keep(replace(intent, pid=pid, birth=birth))
        log.info("Started %s with pid %s on port %s.", intent.name, pid, intent.port)
        return Outcome(kind="accepted")

    def _not_started(self, order: Order, kind: str, message: str) -> Outcome:
        """Nobody waits for this outcome at the other end of a queue, so the report shows it as a start that exited."""
        self._keep(record_of(order, state="exited", since=self._clock(), message=message))
        return Outcome(kind=kind, retryable=kind == "failed", message=message)  # type: ignore[arg-type]

    def _drain(self, order: Order) -> Outcome:
        record = self._records.get(order.replica)
        if record is None or not record.holds:
            return Outcome(kind="accepted", message=f"{order.replica} is gone already.")
        if record.state == "starting":
            return self._cancel(order)
        if record.state != "draining":
            self._keep(self._ordered(record, order, state="draining", since=self._clock()))
        return Outcome(kind="accepted")

    def _undrain(self, order: Order) -> Outcome:
        record = self._records.get(order.replica)
        if record is None or not record.holds:
            return Outcome(kind="failed", message=f"{order.replica} is gone already.")
        if record.ending_since:
            return Outcome(kind="failed", message=f"{order.replica} is ending already.")
        if record.state == "draining":
            state = state_when_taken_back(self._watches.get(record.name, Watch()))
            self._keep(self._ordered(record, order, state=state, since=self._clock()))
        return Outcome(kind="accepted")

    def _cancel(self, order: Order) -> Outcome:
        record = self._records.get(order.replica)
        if record is None or not record.holds:
            return Outcome(kind="accepted", message=f"{order.replica} is gone already.")
        if record.state in ("ready", "unready"):  # it may serve: what was decided about a starting one is outdated
            return Outcome(kind="refused", message=f"{order.replica} is {record.state} by now; only a drain ends it.")
        if record.state == "starting":
            self._end(self._ordered(record, order, state="draining", since=self._clock()))
        return Outcome(kind="accepted")

    def _ordered(self, record: Record, order: Order, **changes: object) -> Record:
        return replace(
            record, generation=order.generation, drain_timeout_seconds=order.drain_timeout_seconds, **changes  # type: ignore[arg-type]
        )  # fmt: skip

    # Looking

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
        with self._lock:
            asked = [record for record in self._records.values() if record.holds and not record.ending_since]
        healthy = probe([_health_url(record) for record in asked])
        draining = [record.url for record in asked if record.state == "draining" and record.url]
        in_flight = self._in_flight(draining) if draining else {}
        with self._lock:
            for record in list(self._records.values()):
                self._look(record, healthy, in_flight, now)
            if abs(now - self._stock_at) >= timedelta(seconds=STOCK_SECONDS):
                self._inventory, self._stock_at = self._take_stock(), now
            report = self.report(now)
        self._publish(report)
        self._tend_logs(now)

    def _look(self, record: Record, healthy: Mapping[str, bool], in_flight: Mapping[str, int | None], now: datetime) -> None:
        life = processes.look(record.pid, record.birth) if record.holds and record.pid else processes.Ended(None)
        seen = Seen(
            alive=isinstance(life, processes.Alive),
            healthy=healthy.get(_health_url(record)),
            in_flight=in_flight.get(record.url or ""),
        )
        changed, watch, act = step(record, self._watches.get(record.name, Watch()), seen, now, self._timing)
        self._watches[record.name] = watch
        if changed != record:
            log.info("%s is %s.", changed.name, changed.state)
            self._keep(changed)
        self._act(changed, act, life, now)

    def _act(self, record: Record, act: Act, life: processes.Alive | processes.Ended, now: datetime) -> None:
        if act == "terminate":
            self._end(record)
        elif act == "kill" and record.pid:
            processes.end(record.pid, record.birth, force=True)
        elif act == "gone":
            self._forget(record)
        elif act == "exited":
            self._bury(record, life.exit_code if isinstance(life, processes.Ended) else None, now)

    def _end(self, record: Record) -> None:
        self._keep(replace(record, ending_since=self._clock()))
        if record.pid:
            processes.end(record.pid, record.birth, force=False)

    def _bury(self, record: Record, exit_code: int | None, now: datetime) -> None:
        processes.end_leftovers(record.token)
        words = logs.last_words(self._store.log_path(record.name))
        log.warning("%s exited by itself with code %s.", record.name, exit_code)
        self._keep(replace(record, state="exited", since=now, exit_code=exit_code, message=words, devices=(), pid=None))

    def _forget(self, record: Record) -> None:
        processes.end_leftovers(record.token)
        self._store.forget(record.name)
        for memory in (self._records, self._watches, self._tails):
            memory.pop(record.name, None)

    # Telling

    def report(self, now: datetime) -> NodeReport:
        """This host as it is known now."""
        with self._lock:
            return NodeReport(
                node=self._identity.node,
                pool=self._identity.pool,
                at=now,
                resources=dict(self._inventory.offered),
                foreign=dict(self._inventory.foreign),
                replicas=tuple(_reported(record) for _, record in sorted(self._records.items())),
                labels={**self._inventory.shown, **self._identity.labels},
                generation=self._generations.get(self._identity.pool, 0),
                unknown_products=self._inventory.unknown_products,
            )

    def _publish(self, report: NodeReport) -> None:
        last = self._reported
        same = last is not None and replace(report, at=last.at) == last
        if last and same and timedelta(0) <= report.at - last.at < timedelta(seconds=REPORT_SECONDS):
            return
        self._reported = report if self._reporter.report(report) else None

    def _tend_logs(self, now: datetime) -> None:
        with self._lock:
            paths = {name: self._store.log_path(name) for name in self._records}
        for path in paths.values():
            logs.bound(path)
        if abs(now - self._tails_at) < timedelta(seconds=TAIL_SECONDS):
            return
        self._tails_at = now
        logs.prune(self._store.logs, set(paths.values()))
        for name, path in paths.items():
            text = logs.tail(path)
            if text != self._tails.get(name, "") and self._reporter.tail(name, text):
                self._tails[name] = text

    # Ends

    def end_all(self, wait: Callable[[float], object]) -> None:
        """End every engine of this node and wait until they are gone (at most the kill time and a few looks)."""
        with self._lock:
            for record in list(self._records.values()):
                if record.holds and not record.ending_since:
                    self._end(replace(record, state="draining", since=self._clock()))
        deadline = self._clock() + timedelta(seconds=self._timing.kill_after_seconds + 5)
        while self._clock() < deadline:
            self.tick(self._clock())
            if not any(record.holds for record in self._records.values()):
                return
            wait(0.1)

    def close(self) -> None:
        """Give the state folder free. Engines run on."""
        self._store.close()

    def _adopted(self, records: dict[str, Record]) -> dict[str, Record]:
        """What was written down, less the starts that were never done; one that was done is found by its token."""
        adopted = {}
        for name, record in records.items():
            pid = processes.find_by_token(record.token) if record.holds and record.pid is None else record.pid
            if record.holds and pid is None:
                log.warning("The start of %s was written down but never done; it is dropped.", name)
                self._store.forget(name)
                continue
            adopted[name] = record
            if pid != record.pid and pid is not None:
                adopted[name] = replace(record, pid=pid, birth=processes.birth_of(pid) or "")
                self._store.save(adopted[name])
        return adopted

    def _take_stock(self) -> Inventory:
        holding = [record for record in self._records.values() if record.holds]
        return self._hardware.take_stock(
            ours={record.pid for record in holding if record.pid},
            assigned={device for record in holding for device in record.devices},
        )

    def _keep(self, record: Record) -> None:
        self._records[record.name] = record
        try:
            self._store.save(record)
        except OSError:  # a full disk must not stop the looking; what is known stays in memory
            log.exception("The state of %s cannot be written.", record.name)


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
