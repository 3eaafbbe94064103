"""A host of a site in tests: its node worker, where that runs, and how it reaches Redis."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from llmgw_site import embedded_redis

from . import rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host's node worker. `process`: its name among the site's processes; `prefix`: the command that runs it elsewhere."""

    name: str
    units: int = 16
    address: str = "127.0.0.1"
    redis_address: str = embedded_redis.HOST
    redis_port: int | None = None
    ports: str = "20000-20019"
    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def process(self) -> str:
        return "node" if self.name == rows.NODE else f"node-{self.name}"

    def command(self, state: Path, templates: Path) -> list[str]:
        return [
            *self.prefix, sys.executable, "manage.py", "node", self.name, "--pool", rows.POOL, "--resource", f"sim={self.units}",
            "--state", str(state), "--templates", str(templates), "--address", self.address, "--ports", self.ports,
            "--end-engines-on-stop",
        ]  # fmt: skip

    def environment_at(self, redis_url: str) -> dict[str, str]:
        """It reaches Redis by the address and the port at which that is seen from there."""
        port = redis_url.rpartition(":")[2].split("/")[0]
        there = redis_url.replace(f"{embedded_redis.HOST}:{port}", f"{self.redis_address}:{self.redis_port or port}")
        return {"REDIS_URL": there, **self.environment}


def only_host() -> Host:
    """The one of most tests; its engines' ports are where no other run of these tests looks for one."""
    first = 26_000 + os.getpid() % 300 * 20
    return Host(name=rows.NODE, ports=f"{first}-{first + 19}")
