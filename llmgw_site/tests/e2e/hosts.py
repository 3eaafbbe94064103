"""Several hosts on one machine: network namespaces on a bridge. Nothing of their traffic leaves the machine.

Names carry the pid of the test run that made them, so that a later run takes away what a killed one left behind.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from .host import Host

# the range for benchmarks of networks (RFC 2544): nobody's real hosts are there
SUBNET = "198.18.{number}"
_OURS = re.compile(r"llt(\d+)(?:-\d+)?")


class Network:
    """A bridge, and a namespace for each host with one link to it. `units`: what each host offers of the class `sim`."""

    def __init__(self, units: Sequence[int]) -> None:
        self._bridge = f"llt{os.getpid()}"
        taken = {entry["local"] for link in json.loads(ip("-json", "address")) for entry in link["addr_info"]}
        numbers = (n for n in range(256) if f"{SUBNET.format(number=n)}.1" not in taken)
        self._subnet = SUBNET.format(number=next(numbers))
        self.address = f"{self._subnet}.1"
        self.hosts = [self._host(number, count) for number, count in enumerate(units, start=1)]

    def up(self) -> None:
        ip("link", "add", self._bridge, "type", "bridge")
        ip("address", "add", f"{self.address}/24", "dev", self._bridge)
        ip("link", "set", self._bridge, "up")
        for number in range(1, len(self.hosts) + 1):
            self._plug_in(number)

    def cut(self, host: Host) -> None:
        """The cable is pulled out: nothing is answered, and nothing is refused either."""
        ip("link", "set", self._link(self.hosts.index(host) + 1), "down")

    def mend(self, host: Host) -> None:
        ip("link", "set", self._link(self.hosts.index(host) + 1), "up")

    def down(self) -> None:
        """End what still runs in the namespaces, and take all of it away."""
        _remove(lambda pid: pid == os.getpid())

    def _host(self, number: int, units: int) -> Host:
        return Host(
            name=f"host-{number}",
            units=units,
            address=f"{self._subnet}.{number + 10}",
            redis_address=self.address,
            prefix=("ip", "netns", "exec", self._link(number)),
        )

    def _link(self, number: int) -> str:
        """The name of the namespace, and of the end of its link that is on the bridge."""
        return f"{self._bridge}-{number}"

    def _plug_in(self, number: int) -> None:
        name, inside = self._link(number), ("-netns", self._link(number))
        ip("netns", "add", name)
        ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", name, "master", self._bridge, "up")
        ip(*inside, "address", "add", f"{self.hosts[number - 1].address}/24", "dev", "eth0")
        ip(*inside, "link", "set", "lo", "up")
        ip(*inside, "link", "set", "eth0", "up")


def why_not() -> str:
    """Why this machine can have no hosts of that kind; empty where it can."""
    if os.geteuid():
        return "network namespaces need root"
    if not shutil.which("ip"):
        return "network namespaces need the command ip (package iproute2)"
    probe = f"llt{os.getpid()}-0"
    try:
        ip("netns", "add", probe)
        ip("netns", "exec", probe, "true")
    except subprocess.CalledProcessError as error:
        return f"network namespaces are not allowed here: {error.stderr.strip()}"
    finally:
        subprocess.run(["ip", "netns", "delete", probe], capture_output=True, check=False)
    return ""


def remove_leftovers() -> None:
    """Take away what runs that have ended without doing so have left."""
    _remove(lambda pid: not Path(f"/proc/{pid}").exists())


def _remove(chosen: Callable[[int], bool]) -> None:
    for name in _named(ip("netns", "list").split(), chosen):
        for pid in ip("netns", "pids", name).split():
            _end(int(pid))
        ip("netns", "delete", name)
    links = [link["ifname"] for link in json.loads(ip("-json", "link", "show"))]
    for name in _named(links, chosen):
        # one that its namespace has just taken along is no fault
        subprocess.run(["ip", "link", "delete", name], capture_output=True, check=False)


def _named(names: Sequence[str], chosen: Callable[[int], bool]) -> list[str]:
    return [name for name in names if (found := _OURS.fullmatch(name)) and chosen(int(found[1]))]


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def ip(*arguments: str) -> str:
    """What the command says; CalledProcessError where it fails."""
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True, timeout=30).stdout
