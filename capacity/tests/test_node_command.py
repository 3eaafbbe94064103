"""`manage.py node` as it is run: through Celery, without a database, killed and started again."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery

from capacity.drivers.process import ProcessDriver
from capacity.management.commands.node import hardware_of
from capacity.node import options, processes
from capacity.ports import NodeReport, Order

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 60


class Host:
    """One node worker as a process of its own, and the control side's view of it."""

    def __init__(self, folder: Path, url: str, client: redis.Redis) -> None:
        self.folder = folder
        # a database that cannot be opened: the worker must not even try
        self.environment = os.environ | {
            "REDIS_URL": url, "LLMGW_VAR": str(folder / "var"), "DATABASE_URL": f"sqlite:///{folder}/nowhere/db.sqlite3",
            "DJANGO_SETTINGS_MODULE": "llmgw_site.settings",
        }  # fmt: skip
        self.broker = Celery("test", broker=url, set_as_current=False)
        self.driver = ProcessDriver(redis=client, send=self._send)
        self.worker: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        start, end = 61_000 + os.getpid() % 40 * 100, 61_099 + os.getpid() % 40 * 100
        arguments = ["manage.py", "node", "n1", "--pool", "example", "--resource", "sim=16", "--ports", f"{start}-{end}", *more]
        with (self.folder / "worker.log").open("ab") as log:
            self.worker = subprocess.Popen(
                [sys.executable, *arguments], cwd=ROOT, env=self.environment, stdout=log, stderr=subprocess.STDOUT
            )

    def stop(self, number: signal.Signals) -> int:
        assert self.worker is not None
        self.worker.send_signal(number)
        return self.worker.wait(PATIENCE_SECONDS)

    def order(self, op: str, generation: int) -> None:
        order = Order(
            op=op, pool="example", generation=generation, replica="chat-1", model="chat", profile="p", nodes=("n1",),  # type: ignore[arg-type]
            resource="sim", units=4, template="simulator", parameters={"capacity": "4", "load_seconds": "0"},
        )  # fmt: skip
        assert self.driver.apply(order).kind == "accepted"

    def until(self, met: Callable[[NodeReport], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not any(met(report) for report in self.driver.observe("example") or []):
            assert time.monotonic() < deadline, (self.folder / "worker.log").read_text()[-3000:]
            time.sleep(0.05)

    def until_state(self, state: str) -> None:
        self.until(lambda report: [replica.state for replica in report.replicas] == [state])

    def record(self) -> dict[str, Any]:
        [path] = (self.folder / "var" / "node" / "n1" / "replicas").glob("*.json")
        return json.loads(path.read_text())

    def close(self) -> None:
        if self.worker is not None and self.worker.poll() is None:
            self.worker.kill()
            self.worker.wait()
        for path in self.folder.glob("var/node/n1/replicas/*.json"):
            row = json.loads(path.read_text())
            if row["pid"]:
                processes.end(row["pid"], row["birth"], force=True)
        self.broker.close()

    def _send(self, task_name: str, kwargs: dict[str, Any], queue: str, expires: int) -> None:
        self.broker.send_task(task_name, kwargs=kwargs, queue=queue, expires=expires, ignore_result=True)


@pytest.fixture
def host(tmp_path: Path, redis_server: str, redis_client: redis.Redis) -> Iterator[Host]:
    made = Host(tmp_path, redis_server, redis_client)
    yield made
    made.close()


def test_an_engine_started_through_celery_outlives_a_killed_worker_and_is_drained_by_the_next(host: Host) -> None:
    host.start()
    host.order("start", 1)
    host.until_state("ready")
    pid, birth = host.record()["pid"], host.record()["birth"]
    host.stop(signal.SIGKILL)
    assert processes.look(pid, birth) == processes.Alive()

    host.start()
    host.order("drain", 2)
    host.until(lambda report: report.generation == 2)
    host.until(lambda report: report.replicas == ())
    assert processes.look(pid, birth) == processes.Ended(None)
    assert host.stop(signal.SIGTERM) == 0


def test_a_worker_that_is_told_to_takes_its_engines_with_it(host: Host) -> None:
    host.start("--end-engines-on-stop")
    host.order("start", 1)
    host.until_state("ready")
    pid, birth = host.record()["pid"], host.record()["birth"]
    assert host.stop(signal.SIGTERM) == 0
    assert processes.look(pid, birth) == processes.Ended(None)
    [report] = host.driver.observe("example") or []
    assert report.replicas == ()


def test_a_templates_file_that_others_may_write_is_one_sentence(host: Host) -> None:
    path = host.folder / "templates.toml"
    path.write_text("[templates]")
    path.chmod(0o666)
    host.start("--templates", str(path))
    assert host.worker is not None
    assert host.worker.wait(PATIENCE_SECONDS) == 1
    said = (host.folder / "worker.log").read_text().strip().splitlines()
    assert said[-1] == f"{path}: the file may be written by others; take that away with chmod go-w."


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (options.node_name, ""), (options.node_name, "a b"), (options.node_name, "../x"), (options.node_name, "n" * 64),
        (options.resource, "sim"), (options.resource, "sim=-1"), (options.resource, "sim=1.5"), (options.resource, "Sim=1"),
        (options.resource, "gpu/h100=8"), (options.resource, "sim=99999999999"), (options.resource, "sim=" + "9" * 5000),
        (options.label, "zone"), (options.label, "=a"), (options.label, "zone=a\n"),
        (options.address, "localhost"), (options.address, "1.2.3"),
        (options.ports, "20000"), (options.ports, "80-90"), (options.ports, "3000-2000"), (options.ports, "60000-70000"),
    ],
)  # fmt: skip
def test_a_bad_option_is_one_sentence(check: Callable[[str], object], text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        check(text)
    assert str(caught.value).endswith(".")
    assert len(str(caught.value)) < 200


def test_good_options_are_understood() -> None:
    parser = argparse.ArgumentParser()
    options.add_arguments(parser)
    given = parser.parse_args(
        ["gpu-1.a", "--pool", "main", "--resource", "sim=16", "--resource", "cpu=0", "--label", "zone=a", "--ports", "3000-3001"]
    )
    assert (given.name, given.resource, given.label, given.ports) == (
        "gpu-1.a", [("sim", 16), ("cpu", 0)], [("zone", "a")], range(3000, 3002),
    )  # fmt: skip
    assert given.end_engines_on_stop is False


def test_a_worker_that_is_to_offer_no_devices_asks_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> list[Any]:
        raise AssertionError("the devices were asked for")

    monkeypatch.setattr("capacity.node.inventory.list_gpus", asked)
    parser = argparse.ArgumentParser()
    options.add_arguments(parser)
    given = vars(parser.parse_args(["n", "--pool", "p", "--resource", "sim=4", "--resource", "cpu=0", "--no-devices"]))
    assert hardware_of(given).take_stock(set(), set()).offered == {"sim": 4}
