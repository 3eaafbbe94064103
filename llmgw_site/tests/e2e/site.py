"""A whole site of real processes below one folder: Redis, web, worker, beat and hosts' node workers, each ended by its pid."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import redis

from llmgw_site import embedded_redis
from llmgw_site.supervisor import children

from ..waiting import free_port
from . import rows
from .host import Host, only_host

ROOT = Path(__file__).resolve().parents[3]
DEADLINE_SECONDS = 90
SETTINGS = ("LLMGW_", "DATABASE_URL", "REDIS_URL", "DJANGO_", "PYTEST_")
TEMPLATE = """
[templates.{manner}]
command = ["{{python}}", "{script}", "{{port}}", "{manner}"]
"""
T = TypeVar("T")


def until(found: Callable[[], T], why: Callable[[], str] = lambda: "") -> T:
    """What `found` gives once it is true; looked at again and again."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (value := found()):
        assert time.monotonic() < deadline, f"it never came: {why()}"
        time.sleep(0.1)  # between two looks: the processes that are waited for need the processor
    return value


class LiveSite:
    """`start` and `kill` go by a process's name: redis, web, worker, beat, node, and `worker-2`, `beat-2`, `bench`.

    `seed`: what of `rows` it starts with; `address`: where Redis and web listen beside loopback; `redis_url`: of another
    site's server, which this one then shares."""

    def __init__(
        self,
        folder: Path,
        redis_url: str = "",
        hosts: Sequence[Host] = (),
        seed: str = "seed",
        address: str = "127.0.0.1",
    ) -> None:
        self.folder = folder
        self.hosts = list(hosts) or [only_host()]
        self.address = address
        self._seed = seed
        self.port = free_port()
        self.database = folder / "db.sqlite3"
        for name in ("log", "run"):
            (folder / name).mkdir(parents=True)
        self._redis = embedded_redis.prepare(folder / "redis")
        self._shared_redis, self.redis_url = redis_url, redis_url or self._redis.url
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.token = ""
        self.prepare()

    def prepare(self) -> None:
        """The commands of all processes, for the hosts as they are now."""
        self._commands = self._commands_of(self.folder)
        self._environments = {host.process: host.environment_at(self.redis_url) for host in self.hosts}

    # --- processes

    def up(self) -> None:
        """Everything is started; the hosts follow what is written down."""
        self.start("redis")
        self._run([sys.executable, "manage.py", "migrate", "--verbosity", "0"])
        self.token = self.rows(self._seed)
        self.start("web", "worker", "beat", *self._environments)

    def start(self, *names: str) -> None:
        for name in names:
            with (self.folder / "log" / f"{name}.log").open("ab") as log:
                environment = {**self.environment, **self._environments.get(name, {})}
                self._processes[name] = subprocess.Popen(
                    self._commands[name], cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
                )
            if name == "redis":
                until(lambda: embedded_redis.answers(self.redis_url))

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """A signal to the process; with SIGKILL to its whole session, so that nothing of it works on."""
        process = self._processes.pop(name)
        if number == signal.SIGKILL:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        try:
            process.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise

    def forget_views(self) -> None:
        """Each process of a worker reads quotas and measurements anew: they are up to half a minute old else."""
        self.kill("worker", signal.SIGTERM)
        with closing(redis.Redis.from_url(self.redis_url)) as client:
            for key in client.scan_iter("llmgw:last-good:*"):
                client.delete(key)
        self.start("worker")

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def running(self) -> set[str]:
        return {name for name, process in self._processes.items() if process.poll() is None}

    def down(self) -> None:
        """End all of it, and the engines that it started."""
        for name in ("beat-2", "worker-2", "bench", "beat", "worker", "web"):
            if name in self._processes:
                self.kill(name)
        with ExitStack() as rest:  # one that does not end in time keeps no other
            for name in ("redis", *self._environments):
                if name in self._processes:
                    rest.callback(self.kill, name, signal.SIGTERM)

    # --- what it shows

    @property
    def environment(self) -> dict[str, str]:
        mine = {
            "LLMGW_VAR": str(self.folder),
            "LLMGW_PASS_SECONDS": "1",
            "LLMGW_SCRAPE_SECONDS": "1",
            "LLMGW_HOSTS": f"127.0.0.1,{self.address}",
            **({"REDIS_URL": self._shared_redis} if self._shared_redis else {}),
            "DJANGO_SETTINGS_MODULE": f"{__package__}.quick_settings",
        }
        return {
            **{key: value for key, value in os.environ.items() if not key.startswith(SETTINGS)},
            **children.ENVIRONMENT,
            **mine,
        }

    def manage(self, *arguments: str) -> str:
        """What a command prints."""
        return self._run([sys.executable, "manage.py", *arguments])

    def back_up(self, path: Path) -> None:
        """The database as it is now, as docs/operations.md says."""
        with closing(sqlite3.connect(self.database, timeout=20)) as connection:
            connection.execute("VACUUM INTO ?", (str(path),))

    def put_back(self, path: Path) -> None:
        """A copy in the place of the database, which nobody has open."""
        for suffix in ("-wal", "-shm"):
            self.database.with_name(self.database.name + suffix).unlink(missing_ok=True)
        shutil.copy(path, self.database)

    def rows(self, what: str) -> str:
        return self._run([sys.executable, "-m", rows.__name__, what])

    def ask(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of the site's database, or an edit of it."""
        with closing(sqlite3.connect(self.database, timeout=20)) as connection, connection:
            return connection.execute(sql, values).fetchall()

    def one(self, sql: str, *values: Any) -> Any:
        return self.ask(sql, *values)[0][0]

    def bounds(self, model: str, least: int, most: int) -> None:
        self.ask("UPDATE capacity_languagemodel SET min_replicas = ?, max_replicas = ? WHERE name = ?", least, most, model)

    def replicas(self, model: str = "chat") -> dict[str, str]:
        """Replica → state, as the last pass wrote it; those that are gone are not in it."""
        sql = "SELECT r.name, r.state FROM capacity_replica r JOIN capacity_languagemodel m ON m.id = r.model_id"
        return dict(self.ask(f"{sql} WHERE m.name = ? AND r.gone_at IS NULL", model))

    def counts(self, model: str, count: int) -> bool:
        """Whether exactly so many are there, all of them ready, and as many engines run."""
        found = self.replicas(model)
        return len(found) == count and set(found.values()) <= {"ready"} and found.keys() == self.engines(model).keys()

    def wait_for(self, count: int, model: str = "chat") -> list[str]:
        """The names of the replicas, once exactly so many are there and ready."""
        until(lambda: self.counts(model, count), lambda: f"{count} of {model}; {self.story()}")
        return sorted(self.replicas(model))

    def story(self) -> str:
        """What there is and why, for the sentence of a test that fails."""
        decisions = {model: self.why(model) for model in ("chat", *rows.ASIDE)}
        return f"{self.running()} {self.ask('SELECT name, state FROM capacity_replica WHERE gone_at IS NULL')} {decisions}"

    def why(self, model: str, most: int = 3) -> list[tuple[Any, ...]]:
        """The last decisions on a model: outcome, reason, sentence."""
        sql = "SELECT d.outcome, d.reason, d.why FROM capacity_decision d JOIN capacity_languagemodel m ON m.id = d.model_id"
        return self.ask(f"{sql} WHERE m.name = ? ORDER BY d.id DESC LIMIT ?", model, most)

    def engines(self, model: str = "chat") -> dict[str, int]:
        """Replica → pid of each engine that lives, as the node worker's records have it."""
        found = {}
        for path in (self.folder / "node").glob("*/replicas/*.json"):
            try:
                record = json.loads(path.read_text())
            except (OSError, ValueError):
                continue  # it is written or deleted just now
            if record["model"] == model and record.get("pid") and _lives(record["pid"]):
                found[record["name"]] = record["pid"]
        return found

    def passes(self) -> int:
        return self.one("SELECT count(*) FROM capacity_pass")

    def more_passes(self, count: int) -> None:
        """Wait until so many more were made."""
        before = self.passes()
        until(lambda: self.passes() >= before + count, lambda: self.log("worker")[-2000:])

    def endpoints(self) -> dict[str, set[str]]:
        """What the API tells a gateway: model → replicas."""
        url = f"http://{self.address}:{self.port}/api/v1/endpoints?pool={rows.POOL}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            document = json.load(answer)
        found: dict[str, set[str]] = {model["name"]: set() for model in document["models"]}
        for endpoint in document["endpoints"]:
            found[endpoint["model"]].add(endpoint["replica"])
        return found

    def url(self, replica: str) -> str:
        return self.one("SELECT url FROM capacity_replica WHERE name = ?", replica)

    def log(self, name: str) -> str:
        return (self.folder / "log" / f"{name}.log").read_text(errors="replace")

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.redis_url)

    @contextmanager
    def requests(self, replica: str, count: int) -> Iterator[None]:
        """So many streams that an engine answers as long as this lasts."""
        host, port = self.url(replica).removeprefix("http://").split(":")
        body = json.dumps({"model": "chat", "prompt": "Go on.", "stream": True, "max_tokens": 100_000}).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        streams = [socket.create_connection((host, int(port)), timeout=DEADLINE_SECONDS) for _ in range(count)]
        try:
            for stream in streams:
                stream.sendall(head.encode() + b"\r\n\r\n" + body)
            yield
        finally:
            for stream in streams:
                stream.close()

    # --- inside

    def _run(self, command: Sequence[str]) -> str:
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def _commands_of(self, folder: Path) -> dict[str, Sequence[str]]:
        site = children.Site(folder=folder, root=ROOT, host=self.address, port=self.port)
        product = {child.name: list(child.command) for child in site.wanted("")}
        templates = folder / "templates.toml"
        script = Path(__file__).with_name("hostile_engine.py")
        templates.write_text("".join(TEMPLATE.format(manner=manner, script=script) for manner in rows.MANNERS))
        nodes = {host.process: host.command(folder / "node" / host.name, templates) for host in self.hosts}
        second = [part.replace("control@", "control-2@") for part in product["worker"]]
        twin = [part.replace("celerybeat-schedule", "celerybeat-schedule-2") for part in product["beat"]]
        # what stands on the line counts more than what stands in the file
        listen = ("--bind", *{embedded_redis.HOST, self.address})
        return {**product, **nodes, "worker-2": second, "beat-2": twin, "redis": [*self._redis.command, *listen]}


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
