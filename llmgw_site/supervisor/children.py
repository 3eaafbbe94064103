"""Which children the product consists of. Those of an example are wanted while its flag file exists."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llmgw_site import embedded_redis, env

from .child import Child
from .health import base_url

EXAMPLE_FLAG = "example.json"
EXAMPLE_NODE = "example-1"
LLAMA_FLAG = "example-llama.json"
LLAMA_NODE = "llama-1"
NODE_STOP_SECONDS = 25.0  # an engine has 10 s after SIGTERM, and then is killed
SOURCE_SUFFIXES = {".py", ".html", ".toml", ".css", ".js"}
_SETTINGS = ("LLMGW_", "DATABASE_URL", "REDIS_URL", "PYTHON")
# on top of the person's own environment
ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "llmgw_site.settings",
    "PYTHONUNBUFFERED": "1",
    # a thread pool for algebra in each process would cost memory and gain nothing
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What was asked for: where to listen, where the state lies, where the product lies."""

    folder: Path
    root: Path
    host: str
    port: int

    @property
    def url(self) -> str:
        return base_url(self.host, self.port)

    def wanted(self, depends_on: str) -> list[Child]:
        """All children but Redis. `depends_on`: see `state_now`."""
        children = [*_control(self), _node(self, name=node_name(self.folder), child="node", pool="default", ports="20000-20999")]
        if (self.folder / EXAMPLE_FLAG).exists():
            children += _example(self)
        if (self.folder / LLAMA_FLAG).exists():
            children += _llama(self)
        return [replace(child, depends_on=depends_on, environment=ENVIRONMENT) for child in children]

    def state_now(self, redis_url: str) -> str:
        """A digest of what makes a running process useless when it changes: source files, settings, the address of Redis."""
        return hashlib.sha256(repr((redis_url, _settings(), _sources(self.root))).encode()).hexdigest()


def redis_child(server: embedded_redis.EmbeddedRedis) -> Child:
    """The embedded server: ended last."""
    return Child(name="redis", command=server.command, stage=0, depends_on=server.url)


def _control(site: Site) -> list[Child]:
    listen = f"[{site.host}]:{site.port}" if ":" in site.host else f"{site.host}:{site.port}"
    shared_memory = Path("/dev/shm")  # noqa: S108  (a worker's heartbeat file must not wait for a disk)
    heartbeat = shared_memory if os.access(shared_memory, os.W_OK) else site.folder / "run"
    web = (
        "gunicorn", "llmgw_site.wsgi:application", "--bind", listen, "--worker-class", "gthread", "--workers", "2",
        "--threads", "4", "--preload", "--worker-tmp-dir", str(heartbeat), "--graceful-timeout", "5", "--timeout", "60",
        "--no-control-socket", "--log-level", "warning",
    )  # fmt: skip
    mine = env.installation_id(site.folder)
    # processes, not threads: only those can be ended when a task outlives its time limit
    worker = (
        "celery", "-A", "llmgw_site", "worker", "-Q", f"control.{mine},scrape.{mine}", "-n", "control@%h",
        "--pool", "prefork", "-c", "2",
        "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO",
    )  # fmt: skip
    # one process, one sweep at a time; what it measures with must not share the processes of the passes
    sweeps = (
        "celery", "-A", "llmgw_site", "worker", "-Q", f"bench.{mine}", "-n", "bench@%h", "--pool", "solo",
        "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO",
    )  # fmt: skip
    beat = (
        "celery", "-A", "llmgw_site", "beat", "--schedule", str(site.folder / "celerybeat-schedule"), "--pidfile=",
        "--loglevel", "INFO",
    )  # fmt: skip
    return [
        Child(name="web", command=_module(*web), stage=1),
        Child(name="worker", command=_module(*worker), stage=2),
        Child(name="bench", command=_module(*sweeps), stage=2),
        Child(name="beat", command=_module(*beat), stage=2),
    ]


def _example(site: Site) -> list[Child]:
    """A host of its own that offers units of a class `sim`, and the load. Cores and devices are the other host's to offer."""
    gateway = (
        "capacity.gateway", "--api", site.url, "--token-file", str(site.folder / "example" / "token"),
        "--pool", "example",
    )  # fmt: skip
    return [
        _node(
            site,
            name=EXAMPLE_NODE,
            child="node-example",
            pool="example",
            ports="21000-21999",
            options=offer("sim=16"),
        ),
        Child(name="gateway", command=_module(*gateway), stage=2),
    ]


def _llama(site: Site) -> list[Child]:
    """A host of its own for two real engines of one thread each, and the load that was made for this machine."""
    folder = site.folder / "example-llama"
    gateway = (
        "capacity.gateway", "--api", site.url, "--token-file", str(folder / "token"), "--pool", "llama",
        "--shape", str(folder / "load.json"), "--source", "llama-gateway",
    )  # fmt: skip
    return [
        _node(site, name=LLAMA_NODE, child="node-llama", pool="llama", ports="22000-22999", options=offer("thread=2")),
        Child(name="gateway-llama", command=_module(*gateway), stage=2),
    ]


def _node(site: Site, *, name: str, child: str, pool: str, ports: str, options: Sequence[str] = ()) -> Child:
    command = [
        sys.executable, str(site.root / "manage.py"), "node", name, "--pool", pool, "--state", str(node_state(site.folder, name)),
        "--ports", ports, "--end-engines-on-stop",
    ]  # fmt: skip
    command += options
    return Child(name=child, command=tuple(command), stage=2, stop_seconds=NODE_STOP_SECONDS)


def offer(resource: str) -> tuple[str, ...]:
    """Of this machine nothing but units of that class: its cores and devices are the other host's to offer."""
    return ("--resource", resource, "--resource", "cpu=0", "--no-devices")


def node_state(folder: Path, name: str) -> Path:
    """Where a node worker of this site remembers its engines."""
    return folder / "node" / name.replace("/", "-")


def node_name(folder: Path) -> str:
    """This host's name as it was at the first start: a name that changes (a laptop's, a container's) would be a new node."""
    path = folder / "node-name"
    if not path.exists():
        path.write_text(platform.node().strip().strip("/") or "local")
    return path.read_text().strip()


def engines(folder: Path) -> list[Path]:
    """The state files of all engines of this site's node workers."""
    return sorted((folder / "node").glob("*/replicas/*.json"))


def _settings() -> list[tuple[str, str]]:
    return sorted((key, value) for key, value in os.environ.items() if key.startswith(_SETTINGS))


def _sources(root: Path) -> list[tuple[str, int, int]]:
    packages = (root / name for name in ("llmgw_site", "capacity", "quotas", "templates"))
    files = [
        path for package in packages for path in package.rglob("*") if path.suffix in {".py", ".html", ".toml", ".css", ".js"}
    ]
    return sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files)


def _module(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", *arguments)
