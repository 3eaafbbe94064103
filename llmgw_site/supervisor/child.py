"""One child: started in a session of its own, or adopted from an earlier supervisor; restarted when it dies; ended."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from capacity.node import logs, processes

log = logging.getLogger(__name__)

LONGEST_BACKOFF_SECONDS = 30.0
# one that has run for so long is well: its next death is a first one again
WELL_AFTER_SECONDS = 60.0
MAX_LOG_BYTES = 8_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """What to run. `stage`: a higher one is ended earlier; `stop_seconds`: from SIGTERM to SIGKILL.

    `depends_on`: whatever else, when it differs, makes a running one useless (settings, versions of the files)."""

    name: str
    command: tuple[str, ...]
    stage: int = 1
    stop_seconds: float = 10.0
    depends_on: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Two children of one fingerprint are the same."""
        parts = json.dumps([self.name, self.command, self.depends_on, sorted(self.environment.items())])
        return hashlib.sha256(parts.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What an earlier supervisor wrote down of a child, so that the next one knows it again."""

    name: str
    pid: int
    birth: str
    fingerprint: str


class Running:
    """A child's process. Times are seconds of one monotonic clock, given by the caller."""

    def __init__(self, child: Child, *, folder: Path, root: Path) -> None:
        self.child = child
        self.fingerprint = child.fingerprint
        self.failures = 0  # deaths in a row, none of them after having run well
        self._folder = folder
        self._root = root
        self._pid: int | None = None
        self._birth = ""
        self._started_at = 0.0
        self._due_at = 0.0
        self._terminated_at: float | None = None

    @property
    def log_path(self) -> Path:
        return self._folder / "log" / f"{self.child.name}.log"

    def last_words(self) -> str:
        """The last line that it wrote, for a sentence about it."""
        lines = logs.tail(self.log_path, 4_000).strip().splitlines()
        return lines[-1][:500] if lines else "it wrote nothing"

    def adopt(self, record: Record, now: float) -> bool:
        """Take over what an earlier supervisor started; False where that is gone."""
        if not is_alive(record):
            end_session(record.pid, record.birth)
            return False
        self._pid, self._birth, self.fingerprint, self._started_at = record.pid, record.birth, record.fingerprint, now
        return True

    def start(self, now: float) -> None:
        """Start it now. One that cannot even start counts as a death, and is tried again later."""
        self._started_at = now
        try:
            self._pid, self._birth = processes.spawn(
                self.child.command,
                directory=str(self._root),
                environment={**os.environ, **self.child.environment},
                output=self.log_path,
            )
        except OSError as error:
            log.error("%s cannot start: %s", self.child.name, error)
            self._died(now)
            return
        record = Record(name=self.child.name, pid=self._pid, birth=self._birth, fingerprint=self.fingerprint)
        write_record(self._folder, record)

    def look(self, now: float) -> str | None:
        """See how it does, and restart it when that is due. A sentence when it has just died."""
        logs.bound(self.log_path, MAX_LOG_BYTES)
        if self._pid is None:
            if now >= self._due_at:
                self.start(now)
            return None
        seen = processes.look(self._pid, self._birth)
        if isinstance(seen, processes.Alive):
            if now - self._started_at >= WELL_AFTER_SECONDS:
                self.failures = 0
            return None
        end_session(self._pid, self._birth)
        self._died(now)
        how = "" if seen.exit_code is None else f" ({_how(seen.exit_code)})"
        return f"{self.child.name} ended{how}: {self.last_words()}"

    def terminate(self, now: float) -> None:
        """Ask it to end."""
        if self._pid is not None and self._terminated_at is None:
            self._terminated_at = now
            # the leader alone: it ends its own in the order that it needs, such as tasks that run
            if processes.birth_of(self._pid) == self._birth:
                os.kill(self._pid, signal.SIGTERM)

    def gone(self, now: float, *, force: bool = False) -> bool:
        """Whether it has ended after `terminate`; it is killed when its time is over, or with `force` at once."""
        if self._pid is not None:
            overdue = self._terminated_at is not None and now - self._terminated_at >= self.child.stop_seconds
            if force or overdue:
                processes.end(self._pid, self._birth, force=True)
            if isinstance(processes.look(self._pid, self._birth), processes.Alive):
                return False
            end_session(self._pid, self._birth)
            self._pid = None
        forget_record(self._folder, self.child.name)
        return True

    def _died(self, now: float) -> None:
        self._pid = None
        self._due_at = now + min(2.0**self.failures, LONGEST_BACKOFF_SECONDS)
        self.failures += 1


def is_alive(record: Record) -> bool:
    """Whether the recorded process runs, and is not another one of the same pid."""
    return processes.birth_of(record.pid) == record.birth and isinstance(
        processes.look(record.pid, record.birth), processes.Alive
    )


def end_session(leader: int, birth: str) -> None:
    """Kill what is left of a session whose leader has ended. While one member lives, the kernel gives its number to nobody."""
    for process in psutil.process_iter():
        with contextlib.suppress(OSError, psutil.Error):
            # the leader may stay as a zombie where nobody buries it
            if os.getsid(process.pid) == leader and processes.birth_of(leader) in (None, birth):
                process.kill()


def read_records(folder: Path) -> list[Record]:
    """All records below `folder`; one that cannot be read tells nothing and is taken away."""
    records = []
    for path in sorted((folder / "run").glob("*.json")):
        try:
            records.append(Record(**json.loads(path.read_text())))
        except (OSError, ValueError, TypeError):
            path.unlink(missing_ok=True)
    return records


def write_record(folder: Path, record: Record) -> None:
    path = folder / "run" / f"{record.name}.json"
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(asdict(record)))
    fresh.replace(path)


def forget_record(folder: Path, name: str) -> None:
    (folder / "run" / f"{name}.json").unlink(missing_ok=True)


def _how(exit_code: int) -> str:
    return f"signal {signal.Signals(-exit_code).name}" if exit_code < 0 else f"exit code {exit_code}"
