"""A node agent over tiny real engines and a real Redis, with a clock moved by hand; and the same face on the fleet in memory."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import redis

from capacity.drivers.fake import FakeFleet
from capacity.drivers.process import ProcessDriver
from capacity.drivers.wire import order_from_json
from capacity.node.agent import NodeAgent
from capacity.node.inventory import Hardware
from capacity.node.lifecycle import Timing
from capacity.node.nvml import Gpu
from capacity.node.orders import Identity
from capacity.node.record import Record, Store
from capacity.node.reporter import Reporter
from capacity.node.start import Place
from capacity.node.templates import parse_templates
from capacity.ports import NodeReport, Order, Outcome, ReplicaReport

POOL, NODE = "example", "n1"
PATIENCE_SECONDS = 30
ENGINE = """
import http.server, os, signal, sys
port, mode = int(sys.argv[1]), sys.argv[2]
print("engine on", port, "password=hunter2hunter2", flush=True)
if mode == "broken":
    sys.exit("RuntimeError: no weights")
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        loads = mode == "loading" and not os.path.exists(os.path.join(os.path.dirname(sys.argv[0]), "loaded"))
        self.send_response(503 if loads else 200)
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
TEMPLATES = """
[templates.good]
command = ["{{python}}", "{script}", "{{port}}", "good"]
[templates.broken]
command = ["{{python}}", "{script}", "{{port}}", "broken"]
[templates.stubborn]
command = ["{{python}}", "{script}", "{{port}}", "stubborn"]
[templates.loading]
command = ["{{python}}", "{script}", "{{port}}", "loading"]
[templates.missing]
command = ["/nowhere/engine"]
[templates.sized]
command = ["{{python}}", "{script}", "{{port}}", "{{size}}"]
parameters.size = {{ type = "integer", min = 1, max = 8 }}
"""


def an_order(op: str = "start", replica: str = "chat-1", generation: int = 1, **changes: Any) -> Order:
    """An order for the one node of the tests."""
    values: dict[str, Any] = {
        "op": op, "pool": POOL, "generation": generation, "replica": replica, "model": "chat", "profile": "p",
        "nodes": (NODE,), "resource": "sim", "units": 4, "template": "good", "fingerprint": "f1",
    }  # fmt: skip
    return Order(**values | changes)


class Fleet:
    """What the tests of the contract need of a fleet, whichever driver moves it. A model named "broken" never starts."""

    driver: FakeFleet | ProcessDriver
    in_flight: dict[str, int]

    def apply(self, order: Order) -> Outcome:
        """The host's own answer where the driver only queued."""
        return self.driver.apply(order)

    def report(self) -> NodeReport:
        """The one node's last report."""
        [report] = self.driver.observe(POOL) or []
        return report

    def replica(self, name: str = "chat-1") -> ReplicaReport | None:
        """That replica in the last report."""
        return next((replica for replica in self.report().replicas if replica.name == name), None)

    def state(self, name: str = "chat-1") -> str:
        """Its state, or "gone"."""
        replica = self.replica(name)
        return replica.state if replica else "gone"

    def start(self, name: str = "chat-1", generation: int = 1, **changes: Any) -> None:
        """Start a replica and wait until it is ready."""
        assert self.apply(an_order("start", name, generation, **changes)).kind == "accepted"
        self.until(lambda: self.state(name) == "ready")

    def until(self, met: Callable[[], bool]) -> None:
        """Look again and again until the condition is met."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not met():
            assert time.monotonic() < deadline, f"not met: {self.report()}"
            self.look()

    def look(self) -> None:
        raise NotImplementedError

    def advance(self, seconds: int) -> None:
        raise NotImplementedError

    def kill(self, name: str) -> None:
        raise NotImplementedError

    def hang(self, name: str) -> None:
        raise NotImplementedError

    def restart(self) -> None:
        raise NotImplementedError

    def finish_loading(self) -> None:
        """Engines of the template `loading` answer from now on."""

    def close(self) -> None:
        """Leave nothing behind."""


class FleetInMemory(Fleet):
    def __init__(self) -> None:
        self.driver = self.fake = FakeFleet(start_seconds=2)
        self.in_flight = self.fake.in_flight
        self.fake.broken["broken"] = "RuntimeError: no weights"
        self.fake.add_node(NODE, POOL, {"sim": 16})

    def look(self) -> None:
        self.fake.advance(1)

    def advance(self, seconds: int) -> None:
        self.fake.advance(seconds)

    def kill(self, name: str) -> None:
        self.fake.kill(name)

    def hang(self, name: str) -> None:
        self.fake.hang(name)

    def restart(self) -> None:
        """A host's worker restarts: nothing in memory can be lost by that, the engines' records stay."""
        self.fake.silence(NODE)
        self.fake.advance(5)
        self.fake.silence(NODE, False)
        self.fake.advance(1)


class FleetOfProcesses(Fleet):
    def __init__(self, folder: Path, client: redis.Redis, gpus: Callable[[], Sequence[Gpu]] = list) -> None:
        script = folder / "engine.py"
        script.write_text(ENGINE)
        self.folder, self.client, self.gpus = folder, client, gpus
        self.templates = parse_templates(TEMPLATES.format(script=script), "test")
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.in_flight = {}
        self.stopped: int | None = None
        self.outcome = Outcome(kind="failed")
        self.driver = ProcessDriver(redis=client, send=self._send)
        self.agent = self._made()
        self.look()

    def apply(self, order: Order) -> Outcome:
        queued = self.driver.apply(order)
        self.look()
        return self.outcome if queued.kind == "accepted" else queued

    def look(self) -> None:
        threading.Event().wait(0.02)
        self._tick(timedelta(milliseconds=50))

    def advance(self, seconds: int) -> None:
        for _ in range(seconds):
            self._tick(timedelta(seconds=1))

    def kill(self, name: str) -> None:
        os.kill(self.pid(name), signal.SIGKILL)
        self.until(lambda: self.state(name) != "ready")

    def hang(self, name: str) -> None:
        self.stopped = self.pid(name)
        os.kill(self.stopped, signal.SIGSTOP)

    def finish_loading(self) -> None:
        (self.folder / "loaded").touch()

    def restart(self) -> None:
        self.agent.close()
        self.agent = self._made()
        self.advance(1)

    def record(self, name: str = "chat-1") -> Record:
        """What the disk holds of a replica."""
        self.agent.close()
        store = Store(self.folder / "state")
        record = store.load()[name]
        store.close()
        self.agent = self._made()
        return record

    def pid(self, name: str = "chat-1") -> int:
        """The process of a replica."""
        pid = self.record(name).pid
        assert pid is not None
        return pid

    def close(self) -> None:
        if self.stopped is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.stopped, signal.SIGCONT)
        self.agent.end_all(threading.Event().wait)
        self.agent.close()

    def _tick(self, step: timedelta) -> None:
        self.now += step
        self.agent.tick(self.now)

    def _send(self, task_name: str, kwargs: dict[str, Any], queue: str, expires: int) -> None:
        """In place of Celery and the host's queue."""
        assert (task_name, queue, expires) == ("capacity.node_tasks.apply_order", f"node.{NODE}", 60)
        order = order_from_json(kwargs["order"])
        if order.model == "broken":
            order = order_from_json({**kwargs["order"], "template": "broken"})
        self.outcome = self.agent.apply(order)

    def _flights(self, urls: Sequence[str]) -> Mapping[str, int | None]:
        names = {replica.url: replica.name for replica in self.agent.report(self.now).replicas}
        return {url: self.in_flight.get(names[url], 0) for url in urls}

    def _clock(self) -> datetime:
        # end_all waits for real processes, so its clock must not stand still
        self.now += timedelta(milliseconds=20)
        return self.now

    def _made(self) -> NodeAgent:
        return NodeAgent(
            identity=Identity(node=NODE, pool=POOL, labels={"zone": "a"}),
            store=Store(self.folder / "state"),
            templates=lambda: self.templates,
            hardware=Hardware(typed={"sim": 16, "cpu": 0}, gpus=self.gpus),
            place=Place(address="127.0.0.1", ports=range(*_port_window())),
            reporter=Reporter(self.client),
            in_flight=self._flights,
            timing=Timing(),
            clock=self._clock,
        )


def _port_window() -> tuple[int, int]:
    """Ports of this test process's own, since others run beside it; below those that the kernel gives to clients."""
    start = 21_000 + os.getpid() % 100 * 100
    return start, start + 100
