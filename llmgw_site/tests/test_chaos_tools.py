"""The tools that hurt: a cable to Redis that is cut, and a clock that is set."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from capacity.node.processes import TOKEN_VARIABLE
from llmgw_site.tests.chaos import leftovers
from llmgw_site.tests.chaos.fleet import CLOCK, Fleet
from llmgw_site.tests.chaos.proxy import Proxy
from llmgw_site.tests.e2e.host import Host

SHOWN = "import datetime, time; print(datetime.datetime.now(datetime.UTC).timestamp(), time.time())"


@pytest.fixture
def cable(redis_server: str) -> Iterator[Proxy]:
    proxy = Proxy(int(redis_server.rpartition(":")[2].split("/")[0]))
    yield proxy
    proxy.close()


@pytest.fixture
def host(cable: Proxy, redis_client: redis.Redis) -> Iterator[redis.Redis]:
    """A host's one connection through the cable."""
    found = redis.Redis(port=cable.port, socket_timeout=0.3, retry=Retry(NoBackoff(), 0), single_connection_client=True)
    yield found
    found.close()


def test_a_cable_passes_on_what_is_said(host: redis.Redis, redis_client: redis.Redis) -> None:
    assert host.set("a", "b" * 1_000_000)
    assert redis_client.get("a") == b"b" * 1_000_000


@pytest.mark.parametrize("drop", [False, True])
def test_a_cut_cable_answers_nothing_and_a_mended_one_does_again(cable: Proxy, host: redis.Redis, drop: bool) -> None:
    host.set("a", 1)
    cable.cut(drop=drop)
    for _ in range(2):  # on the old connection, and on a new one
        with pytest.raises(redis.TimeoutError):
            host.get("a")
    cable.mend()
    assert host.get("a") == b"1"


def test_what_was_said_into_a_cut_cable_comes_later(cable: Proxy, host: redis.Redis, redis_client: redis.Redis) -> None:
    host.set("a", 1)
    cable.cut(drop=False)
    host.connection.send_command("SET", "a", 2)
    assert redis_client.get("a") == b"1"
    cable.mend()
    assert host.connection.read_response() == b"OK"
    assert redis_client.get("a") == b"2"


def test_a_dropped_connection_is_heard_of_when_something_is_said(cable: Proxy, host: redis.Redis) -> None:
    host.set("a", 1)
    cable.cut(drop=True)
    cable.mend()
    host.connection.send_command("GET", "a")
    with pytest.raises(redis.ConnectionError):
        host.connection.read_response()


@pytest.mark.parametrize("is_over", [True, False])
def test_what_a_killed_run_left_running_is_ended_by_the_next_and_a_living_ones_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_over: bool
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = leftovers.new_folder()
    if is_over:
        (folder / "owner").write_text("1 another-birth")
    worker = subprocess.Popen(["sleep", "600"], env={"LLMGW_VAR": str(folder)})
    engine = subprocess.Popen(["sleep", "600"], env={TOKEN_VARIABLE: "abc"})
    (folder / "redis").mkdir()
    server = subprocess.Popen(["sleep", "600"], env={}, cwd=folder / "redis")
    record = folder / "node" / "host-1" / "replicas" / "chat-1.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"token": "abc"}))
    try:
        leftovers.end_leftovers()
        if not is_over:
            assert (worker.poll(), engine.poll(), server.poll()) == (None, None, None)
        else:
            assert {worker.wait(), engine.wait(), server.wait()} == {-signal.SIGKILL}
    finally:
        for process in (worker, engine, server):
            process.kill()
            process.wait()
    assert record.exists()


@pytest.mark.parametrize(
    ("command", "host"),
    [
        (["python", "-m", "capacity.simulator", "--host", "127.70.1.12", "--port", "1"], "host-2"),
        (["python", "-m", "capacity.simulator", "--host", "127.0.0.1"], None),
        (["python", "-m", "capacity.simulator", "--port", "1"], None),
        (["python", "-m", "capacity.simulator", "--host"], None),
        (["sleep", "--host", "127.70.1.12"], None),
        ([], None),
    ],
)
def test_an_engine_is_told_by_its_address_from_those_of_others(command: list[str], host: str | None) -> None:
    fleet = Fleet.__new__(Fleet)
    fleet.hosts = [Host(name=f"host-{number}", address=f"127.70.1.{number + 10}") for number in (1, 2, 3)]
    assert fleet.host_of(command) == host


@pytest.mark.parametrize("seconds", [-3600, 0, 45])
def test_a_clock_is_set_for_one_process_alone(tmp_path: Path, seconds: int) -> None:
    (tmp_path / "clock").write_text(str(seconds))
    environment = {**os.environ, "PYTHONPATH": str(CLOCK), "CHAOS_CLOCK": str(tmp_path / "clock")}
    done = subprocess.run([sys.executable, "-c", SHOWN], env=environment, capture_output=True, text=True, check=True)
    now = datetime.now(UTC).timestamp()
    assert [round((float(text) - now - seconds) / 60) for text in done.stdout.split()] == [0, 0]
