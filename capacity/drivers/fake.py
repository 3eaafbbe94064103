"""A fleet in memory with the behaviour of the process driver and a clock that is moved by hand: for tests and trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from capacity.drivers.process import ORDER_EXPIRES_SECONDS
from capacity.ports import Fence, NodeReport, Order, Outcome, ReplicaReport

KEEP_EXITED_SECONDS = 900
UNHEALTHY_SECONDS = 3
FIRST_INSTANT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _Engine:
    """One replica: what is reported of it, and what the real one would know by itself."""

    seen: ReplicaReport
    healthy_at: datetime
    drain_timeout_seconds: int
    hung_at: datetime | None = None


@dataclass(slots=True)
class _Node:
    report: NodeReport
    silent: bool = False
    clock_off: timedelta = timedelta(0)
    fence: Fence = field(default_factory=Fence)
    engines: dict[str, _Engine] = field(default_factory=dict)
    queue: list[tuple[datetime, Order]] = field(default_factory=list)


class FakeFleet:
    """A FleetDriver with its own clock. `advance` moves time; `in_flight` holds what each replica is working on (absent: 0).

    `start_seconds`: from start to ready; `grace_seconds`: a drain lasts at least this long. `away`: the store of
    reports cannot be read. Models in `broken` exit before they are ready, with that text as their last words.
    """

    def __init__(
        self, *, now: datetime = datetime(2026, 1, 1, tzinfo=UTC), start_seconds: int = 5, grace_seconds: int = 5
    ) -> None:
        self._now = now
        self._start_seconds = start_seconds
        self._grace_seconds = grace_seconds
        self._nodes: dict[str, _Node] = {}
        self.in_flight: dict[str, int] = {}
        self.broken: dict[str, str] = {}
        self.away = False

    # What a test does to it

    def now(self) -> datetime:
        """The fleet's instant."""
        return self._now

    def add_node(self, node: str, pool: str, resources: Mapping[str, int], labels: Mapping[str, str] | None = None) -> None:
        """A host that offers these units and reports from now on."""
        self._nodes[node] = _Node(
            NodeReport(node=node, pool=pool, at=self._now, resources=dict(resources), labels=dict(labels or {}))
        )

    def advance(self, seconds: int) -> None:
        """Let time pass, a second at a time."""
        for _ in range(seconds):
            self._now += timedelta(seconds=1)
            for node in self._nodes.values():
                self._tick(node)

    def silence(self, node: str, silent: bool = True) -> None:
        """Stop (or resume) a host's reports; its engines run on, and orders wait in its queue until they expire."""
        self._nodes[node].silent = silent

    def set_clock(self, node: str, seconds_ahead: int) -> None:
        """Let a host tell the time wrongly in what it reports from now on."""
        self._nodes[node].clock_off = timedelta(seconds=seconds_ahead)

    def kill(self, replica: str, exit_code: int = -9) -> None:
        """End a replica from outside, as SIGKILL does."""
        engine = self._engine(replica)
        engine.seen = _exited(engine.seen, self._now, exit_code, "")

    def hang(self, replica: str, hung: bool = True) -> None:
        """Let a replica stop (or resume) answering its health page."""
        engine = self._engine(replica)
        engine.hung_at = self._now if hung else None

    # FleetDriver

    def observe(self, pool: str) -> Sequence[NodeReport] | None:
        """The last report of each node of the pool, sorted by node; None while `away`."""
        if self.away:
            return None
        return [node.report for _, node in sorted(self._nodes.items()) if node.report.pool == pool]

    def unreadable(self, pool: str) -> Mapping[str, str]:
        """Nothing crosses a wire here."""
        return {}

    def apply(self, order: Order) -> Outcome:
        """Done at once where the host is heard of; queued where it is silent."""
        if len(order.nodes) != 1:
            return Outcome(
                kind="refused", message=f"A replica runs on exactly one host, and {order.replica} names {len(order.nodes)}."
            )
        node = self._nodes.get(order.nodes[0])
        if node is None or node.silent:
            if node is not None:
                node.queue.append((self._now, order))
            return Outcome(kind="accepted", message=f"Queued on {order.nodes[0]}.")
        outcome = self._do(node, order)
        self._report(node)
        return outcome

    # What a host does

    def _do(self, node: _Node, order: Order) -> Outcome:
        if order.pool != node.report.pool:
            return Outcome(kind="refused", message=f"{node.report.node} belongs to pool {node.report.pool}, not to {order.pool}.")
        if refusal := node.fence.refusal(order):
            return Outcome(kind="refused", message=refusal)
        node.fence = node.fence.after(order)
        engine = node.engines.get(order.replica)
        if order.op == "start":
            return self._start(node, order, engine)
        if engine is None or engine.seen.state == "exited":
            kind: Literal["failed", "accepted"] = "failed" if order.op == "undrain" else "accepted"
            return Outcome(kind=kind, message=f"{order.replica} is gone already.")
        return self._change(node, order, engine)

    def _start(self, node: _Node, order: Order, engine: _Engine | None) -> Outcome:
        if engine and engine.seen.state == "draining":
            return Outcome(kind="failed", retryable=True, message=f"{order.replica} is draining; undrain takes it back.")
        if engine and engine.seen.state != "exited":
            return Outcome(kind="accepted", message=f"{order.replica} is {engine.seen.state} already.")
        if engine and order.generation <= engine.seen.generation:
            return Outcome(kind="failed", message=f"{order.replica} was started by this order and has exited.")
        free = node.report.resources.get(order.resource, 0) - _held(node)[order.resource]
        seen = _first_report(order, self._now)
        if order.units < 1 or order.units > free:
            message = f"{order.units} of {order.resource} are asked for, and {max(free, 0)} are free."
            node.engines[order.replica] = _Engine(_exited(seen, self._now, None, message), self._now, 0)
            return Outcome(kind="failed", retryable=True, message=message)
        healthy_at = self._now + timedelta(seconds=self._start_seconds)
        node.engines[order.replica] = _Engine(seen, healthy_at, order.drain_timeout_seconds)
        return Outcome(kind="accepted")

    def _change(self, node: _Node, order: Order, engine: _Engine) -> Outcome:
        state = engine.seen.state
        if state == "starting" and order.op in ("cancel", "drain"):
            del node.engines[order.replica]
        elif order.op == "cancel" and state != "draining":
            return Outcome(kind="refused", message=f"{order.replica} is {state} by now; only a drain ends it.")
        elif (order.op == "drain" and state != "draining") or (order.op == "undrain" and state == "draining"):
            after: Literal["draining", "ready", "unready"]
            after = "draining" if order.op == "drain" else "unready" if self._unhealthy(engine) else "ready"
            engine.seen = replace(engine.seen, state=after, since=self._now, generation=order.generation)
            engine.drain_timeout_seconds = order.drain_timeout_seconds
        return Outcome(kind="accepted")

    def _tick(self, node: _Node) -> None:
        for name, engine in list(node.engines.items()):
            if self._is_gone(engine):
                del node.engines[name]
            else:
                self._look(engine)
        if node.silent:
            return
        queue, node.queue = node.queue, []
        for at, order in queue:
            if self._now - at <= timedelta(seconds=ORDER_EXPIRES_SECONDS):
                self._do(node, order)
        self._report(node)

    def _look(self, engine: _Engine) -> None:
        seen = engine.seen
        if seen.state == "starting" and self._now >= engine.healthy_at:
            words = self.broken.get(seen.model)
            started = replace(seen, state="ready", since=self._now, was_ready=True)
            engine.seen = started if words is None else _exited(seen, self._now, 1, words)
        elif seen.state == "ready" and self._unhealthy(engine):
            engine.seen = replace(seen, state="unready", since=self._now)
        elif seen.state == "unready" and engine.hung_at is None:
            engine.seen = replace(seen, state="ready", since=self._now)

    def _is_gone(self, engine: _Engine) -> bool:
        lasted = (self._now - engine.seen.since).total_seconds()
        if engine.seen.state == "exited":
            return lasted >= KEEP_EXITED_SECONDS
        if engine.seen.state != "draining":
            return False
        idle = engine.hung_at is None and self.in_flight.get(engine.seen.name, 0) == 0
        return lasted >= engine.drain_timeout_seconds or (idle and lasted >= self._grace_seconds)

    def _unhealthy(self, engine: _Engine) -> bool:
        return engine.hung_at is not None and self._now - engine.hung_at >= timedelta(seconds=UNHEALTHY_SECONDS)

    def _report(self, node: _Node) -> None:
        replicas = tuple(engine.seen for _, engine in sorted(node.engines.items()))
        node.report = replace(
            node.report,
            at=self._now + node.clock_off,
            replicas=replicas,
            generation=node.fence.generation,
            installation=node.fence.installation,
        )

    def _engine(self, replica: str) -> _Engine:
        return next(node.engines[replica] for node in self._nodes.values() if replica in node.engines)


def _held(node: _Node) -> Counter[str]:
    held: Counter[str] = Counter()
    for engine in node.engines.values():
        if engine.seen.state != "exited":
            held[engine.seen.resource] += engine.seen.units
    return held


def _first_report(order: Order, now: datetime) -> ReplicaReport:
    return ReplicaReport(
        name=order.replica,
        model=order.model,
        profile=order.profile,
        nodes=order.nodes,
        resource=order.resource,
        units=order.units,
        state="starting",
        since=now,
        url=f"http://{order.nodes[0]}.fake/{order.replica}",
        generation=order.generation,
        fingerprint=order.fingerprint,
    )


def _exited(seen: ReplicaReport, now: datetime, exit_code: int | None, message: str) -> ReplicaReport:
    return replace(seen, state="exited", since=now, url=None, devices=(), exit_code=exit_code, message=message)
