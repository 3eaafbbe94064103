"""An engine that somebody else runs: counted and routed to as long as it answers, replaced when it does not, never ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ..waiting import free_port
from .rows import NODE
from .site import LiveSite, until

NAME = "own-1"
OURS = "SELECT count(*) FROM capacity_action WHERE replica_name = ?"


class Engine:
    """A simulator that no node worker knows of."""

    def __init__(self) -> None:
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        command = [sys.executable, "-m", "capacity.simulator", "--port", str(self.port), "--model", "chat", "--capacity", "2"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    @property
    def lives(self) -> bool:
        return self.process is not None and self.process.poll() is None


@pytest.fixture
def engine(site: LiveSite) -> Iterator[Engine]:
    found = Engine()
    found.start()
    try:
        yield found
    finally:
        found.kill()
        if NAME in site.replicas():
            site.manage("endpoint_remove", NAME, "--reason", "the test is over")


def test_an_engine_that_ran_before_is_counted_routed_to_replaced_and_never_ended(site: LiveSite, engine: Engine) -> None:
    place = ("--model", "chat", "--profile", "small", "--node", NODE, "--name", NAME, "--reason", "it ran before")
    until(lambda: "It answers" in site.manage("endpoint_add", engine.url, *place, "--preview"))
    assert NAME not in site.replicas()
    assert f"{NAME} is registered and ready." in site.manage("endpoint_add", engine.url, *place)
    until(lambda: NAME in site.endpoints()["chat"])
    # it is enough for the floor: what was started from here is the surplus
    until(lambda: site.replicas() == {NAME: "ready"} and not site.engines(), site.story)
    engine.kill()
    until(lambda: site.replicas().get(NAME) == "unready", site.story)
    assert NAME not in site.endpoints()["chat"]
    until(lambda: sorted(site.replicas().values()) == ["ready", "unready"], site.story)
    engine.start()
    until(lambda: site.replicas() == {NAME: "ready"} and not site.engines(), site.story)
    site.manage("endpoint_remove", NAME, "--reason", "it moves into the pool")
    until(lambda: site.counts("chat", 1), site.story)
    assert engine.lives and engine.process is not None
    os.kill(engine.process.pid, 0)
    assert site.one(OURS, NAME) == 0, "nothing was ever asked of it"
