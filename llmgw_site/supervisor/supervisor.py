"""The order of a start, the watch, and the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from capacity.node import logs, processes
from llmgw_site import embedded_redis

from . import health, place
from .child import Child
from .children import ENVIRONMENT, Site, engines, redis_child
from .group import Group
from .interrupts import Asked, Interrupts
from .place import Failed

REDIS_SECONDS = 30.0
READY_SECONDS = 90.0
POLL_SECONDS = 0.5
# so many deaths in a row before the site is ready, and the start is given up
DEATHS_AT_START = 2
LOOK_SECONDS = 1.0

Say = Callable[[str], None]


class Supervisor:
    """Runs one site until it is asked to end. `redis_url`: the one that was given, else empty."""

    def __init__(self, site: Site, *, demo: bool, llama: bool, redis_url: str, hosts: list[str], say: Say) -> None:
        self._site = site
        self._demo = demo
        self._llama = llama
        self._redis_url = redis_url
        self._hosts = hosts
        self._say = say
        self._group = Group(folder=site.folder, root=site.root)
        self._redis: list[Child] = []
        self._depends_on = ""

    def run(self) -> None:
        """Start, watch, end. Failed where a step does not work: by then nothing runs any more."""
        with place.claimed(self._site.folder, self._site.url), Interrupts() as interrupts:
            try:
                self._start(interrupts)
                self._watch(interrupts)
            except Asked:
                self._say("Ending (once more to end at once) …")
            finally:
                self._end(interrupts)
            self._say("Ended.")

    def _start(self, interrupts: Interrupts) -> None:
        self._choose_redis()
        self._depends_on = self._site.state_now(self._redis_url)
        self._adopt(interrupts)
        if not self._group.runs("web"):
            place.check_port(self._site.host, self._site.port)
        self._start_redis(interrupts)
        self._prepare(interrupts)
        self._say("Starting …")
        lacking = self._wait_until_ready(interrupts)
        if lacking:
            self._say(f"It answers and is not well yet: {lacking}")
        how = "answers" if lacking else "is ready"
        self._say(f"llmgw {how}: {self._site.url}   (Ctrl-C ends it; logs are in {self._site.folder / 'log'})")

    def _watch(self, interrupts: Interrupts) -> None:
        while True:
            for sentence in self._group.keep(self._wanted(), time.monotonic()):
                self._say(f"{sentence}. It is started again.")
            interrupts.pause(LOOK_SECONDS)

    def _wanted(self) -> list[Child]:
        return [*self._redis, *self._site.wanted(self._depends_on)]

    def _choose_redis(self) -> None:
        if self._redis_url:
            return
        folder = self._site.folder / "redis"
        running = any(record.name == "redis" for record in self._group.alive())
        try:
            server = embedded_redis.prepare(folder, running=running)
        except embedded_redis.NoRedis as error:
            raise Failed(str(error)) from error
        self._redis, self._redis_url = [redis_child(server)], server.url

    def _adopt(self, interrupts: Interrupts) -> None:
        """Take over what an earlier supervisor left; end what would run otherwise today, such as a web server on another port."""
        if self._group.adopt(self._wanted(), time.monotonic()):
            self._say("Some of it runs already: an earlier supervisor was killed.")
        while not self._group.end_unlike(self._wanted(), time.monotonic()):
            interrupts.pause(0.1)

    def _start_redis(self, interrupts: Interrupts) -> None:
        deadline = time.monotonic() + REDIS_SECONDS
        for child in self._redis:
            self._group.ensure(child, time.monotonic())
        while not embedded_redis.answers(self._redis_url):
            self._give_up_on_deaths()
            if not self._redis or time.monotonic() > deadline:
                raise Failed(f"Redis at {embedded_redis.without_password(self._redis_url)} does not answer.")
            interrupts.pause(0.05)
            for child in self._redis:
                self._group.ensure(child, time.monotonic())

    def _prepare(self, interrupts: Interrupts) -> None:
        """Database, static files, first admin, example: a process of its own, since it loads all of Django."""
        command = [sys.executable, str(self._site.root / "manage.py"), "prepare", "--demo" if self._demo else "--no-demo"]
        command += ["--llama"] if self._llama else []
        log = self._site.folder / "log" / "prepare.log"
        with log.open("wb") as output:
            step = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stderr=output, cwd=self._site.root,
                env={**os.environ, **ENVIRONMENT}, start_new_session=True,
            )  # fmt: skip
        try:
            while step.poll() is None:
                interrupts.pause(0.1)
        finally:
            if step.poll() is None:
                step.kill()
                step.wait()
        if step.returncode:
            lines = logs.tail(log).strip().splitlines() or ["it says nothing"]
            raise Failed(f"Preparing the state folder failed: {lines[-1]} (all of it: {log})")

    def _wait_until_ready(self, interrupts: Interrupts) -> str | None:
        """Wait for /readyz. What it lacks where it is not well in time (its pages say more); Failed where nothing answers."""
        deadline = time.monotonic() + READY_SECONDS
        name = health.host_header(self._hosts)
        while True:
            self._group.keep(self._wanted(), time.monotonic())
            self._give_up_on_deaths()
            answer = health.readiness(self._site.host, self._site.port, name=name)
            if answer.ready:
                return None
            if time.monotonic() > deadline and answer.answered:
                return answer.lacking
            if time.monotonic() > deadline:
                raise Failed(f"Nothing answers at {self._site.url} after {READY_SECONDS:.0f} s: {answer.lacking}")
            interrupts.pause(POLL_SECONDS)

    def _give_up_on_deaths(self) -> None:
        dead = self._group.failing(DEATHS_AT_START)
        if dead is not None:
            raise Failed(f"{dead.child.name} does not start: {dead.last_words()} (all of it: {dead.log_path})")

    def _end(self, interrupts: Interrupts) -> None:
        force = False
        while not self._group.end(time.monotonic(), force=force):
            try:
                interrupts.pause(0.1)
            except Asked:
                force = True
        self._end_engines()

    def _end_engines(self) -> None:
        """Engines outlive a node worker that had to be killed; they do not outlive us."""
        for path in engines(self._site.folder):
            try:
                row = json.loads(path.read_text())
                if row["pid"] is not None:
                    processes.end(row["pid"], row["birth"], force=True)
            except (OSError, ValueError, KeyError, TypeError):
                continue  # the node worker's own matter: it says so when it reads the file


def run(site: Site, *, demo: bool, llama: bool, redis_url: str, hosts: list[str], say: Say) -> int:
    """Run a site to its end; the exit status. A failure is one sentence on stderr."""
    try:
        Supervisor(site, demo=demo, llama=llama, redis_url=redis_url, hosts=hosts, say=say).run()
    except Failed as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    return 0


def absolute(folder: Path) -> Path:
    """The state folder as all children must name it, whatever folder they work in."""
    return folder.expanduser().resolve()
