"""The site that is hurt: three hosts, each with an address on loopback, a cable to Redis and a clock of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from llmgw_site.tests.e2e import rows as e2e_rows
from llmgw_site.tests.e2e.host import Host
from llmgw_site.tests.e2e.site import DEADLINE_SECONDS, ROOT, LiveSite

from . import rows
from .proxy import Proxy

CLOCK = Path(__file__).with_name("clock")
ALWAYS = ("redis", "web", "worker", "worker-2", "beat", "beat-2", *(f"node-{name}" for name in rows.HOSTS))


class Fleet(LiveSite):
    """Everything of a site twice where that is possible, and hosts that can be cut off."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, hosts=[_host(number, name) for number, name in enumerate(rows.HOSTS, start=1)])
        redis_port = int(self.redis_url.rpartition(":")[2].split("/")[0])
        self.cables = {host.name: Proxy(redis_port) for host in self.hosts}
        self.hosts = [
            replace(host, redis_port=self.cables[host.name].port, environment=self._clock_of(host.name)) for host in self.hosts
        ]
        self.prepare()

    def up(self) -> None:
        super().up()
        self.start("worker-2", "beat-2")

    def down(self) -> None:
        """End all of it, whatever state a fault has left it in."""
        for name in self.running():
            self.signal(name, signal.SIGCONT)
        for cable in self.cables.values():
            cable.mend()
        super().down()
        for process in self.engine_processes():
            process.kill()
        for cable in self.cables.values():
            cable.close()

    def rows(self, what: str) -> str:
        assert what == "seed"
        return self._run([sys.executable, "-m", rows.__name__])

    def burst(self) -> Callable[[], None]:
        """Forty passes at once, sent by a process of its own, for whose end what is returned waits."""
        command = [sys.executable, "-m", e2e_rows.__name__, "burst"]
        sender = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def end() -> None:
            sender.wait(DEADLINE_SECONDS)

        return end

    def restart_what_ended(self) -> None:
        """What the supervisor does for what it has started."""
        self.start(*(name for name in ALWAYS if name not in self.running()))

    def signal(self, name: str, number: signal.Signals) -> None:
        """To a process with all its children; nothing where it has ended."""
        if name in self.running():
            os.killpg(self.pid(name), number)

    def set_clock(self, host: str, seconds: float) -> None:
        self._clock_file(host).write_text(str(seconds))

    def engine_processes(self) -> list[psutil.Process]:
        """Those that really run, told by the address that they listen at."""
        return [process for process in psutil.process_iter(["cmdline"]) if self.host_of(process.info["cmdline"] or [])]

    def host_of(self, command: list[str]) -> str | None:
        """The host that an engine of this command line runs on; None for what is no engine of this fleet."""
        if "capacity.simulator" not in command or "--host" not in command[:-1]:
            return None
        address = command[command.index("--host") + 1]
        return next((host.name for host in self.hosts if host.address == address), None)

    def call(self, method: str, path: str, body: Mapping[str, Any]) -> int | None:
        """The status that the API answers with; None where nobody answers in time."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", "If-Match": "*"}
        url = f"http://{self.address}:{self.port}/api/v1/{path}"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return None

    @contextmanager
    def whole(self) -> Iterator[None]:
        """The site is up, and is taken down whatever happens."""
        try:
            self.up()
            yield
        finally:
            self.down()

    def _clock_of(self, host: str) -> dict[str, str]:
        self.set_clock(host, 0)
        return {"PYTHONPATH": str(CLOCK), "CHAOS_CLOCK": str(self._clock_file(host))}

    def _clock_file(self, host: str) -> Path:
        return self.folder / f"clock-{host}"


def _host(number: int, name: str) -> Host:
    """An address that no other run has at the same time: all of 127.0.0.0/8 is this machine."""
    pid = os.getpid()
    address = f"127.{64 + pid // 250 % 100}.{pid % 250}.{number + 10}"
    return Host(name=name, units=rows.UNITS_OF_A_HOST, address=address)
