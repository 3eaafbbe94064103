"""What a host remembers of each replica on disk, so that a restart of its worker loses nothing and starts nothing twice."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO, get_args

from capacity.drivers.wire import time_from_json, time_to_json
from capacity.ports import Fence, ReportedState

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One replica. `pid` None with a state other than exited: the start was written down but not yet done.

    `birth` tells the process from a later one with the same pid; `token` is in its environment. `ending_since` is when
    SIGTERM was sent, after which nothing takes it back. `installation`: whose order started it (empty: before it was said).
    """

    name: str
    model: str
    profile: str
    nodes: tuple[str, ...]
    resource: str
    units: int
    template: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str = ""
    generation: int
    drain_timeout_seconds: int
    state: ReportedState
    since: datetime
    host: str = ""
    port: int = 0
    health: str = "/health"
    devices: tuple[str, ...] = ()
    token: str = ""
    pid: int | None = None
    birth: str = ""
    was_ready: bool = False
    ending_since: datetime | None = None
    exit_code: int | None = None
    message: str = ""
    installation: str = ""

    @property
    def url(self) -> str | None:
        """Where the engine listens; None for one that never got a port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}" if self.port else None

    @property
    def holds(self) -> bool:
        """Whether it holds hardware: all but the exited do."""
        return self.state != "exited"


class AnotherWorker(RuntimeError):
    """The state folder belongs to a worker that runs."""


class Store:
    """One JSON file a replica below `folder`, written whole or not at all, and each pool's fence."""

    def __init__(self, folder: Path) -> None:
        self.logs = folder / "logs"
        self._replicas = folder / "replicas"
        self._generations = folder / "generations.json"
        for path in (folder, self.logs, self._replicas):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _locked(folder / "lock")

    def close(self) -> None:
        """Give the folder free for another worker."""
        self._lock.close()

    def load(self) -> dict[str, Record]:
        """All replicas by name. A file that cannot be read is set aside as *.broken and logged: it hurts no other."""
        records = (self._read(path) for path in sorted(self._replicas.glob("*.json")))
        return {record.name: record for record in records if record is not None}

    def save(self, record: Record) -> None:
        """Write a replica down; on return it survives a power cut."""
        row = asdict(record) | {
            "since": time_to_json(record.since),
            "ending_since": None if record.ending_since is None else time_to_json(record.ending_since),
        }
        _write_atomically(self._replicas / f"{file_key(record.name)}.json", row)

    def forget(self, name: str) -> None:
        """Remove a replica that is gone."""
        (self._replicas / f"{file_key(name)}.json").unlink(missing_ok=True)

    def fences(self) -> dict[str, Fence]:
        """Each pool's fence; ValueError where the file is broken, for then older orders could pass.

        Before installations were told apart a bare generation stood there."""
        try:
            rows = json.loads(self._generations.read_text())
        except FileNotFoundError:
            return {}
        try:
            return {pool: _fence(value) for pool, value in rows.items()}
        except (AttributeError, TypeError, ValueError):
            raise ValueError(f"{self._generations} does not say each pool's generation.") from None

    def save_fences(self, fences: Mapping[str, Fence]) -> None:
        """Write all fences down."""
        _write_atomically(self._generations, {pool: asdict(fence) for pool, fence in fences.items()})

    def log_path(self, name: str) -> Path:
        """Where a replica's output goes."""
        return self.logs / f"{file_key(name)}.log"

    def _read(self, path: Path) -> Record | None:
        try:
            return _record(json.loads(path.read_text()))
        except (OSError, ValueError, TypeError, KeyError) as error:
            log.error("The state file %s is broken (%s) and is set aside.", path.name, error)
            shutil.move(path, path.with_suffix(".broken"))
            return None


def file_key(name: str) -> str:
    """A file name for a replica's name, which may be anything: readable where it can be, unique always."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:60].strip("-")
    return f"{readable or 'replica'}-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:12]}"


def _fence(value: Any) -> Fence:
    fence = Fence(generation=value) if type(value) is int else Fence(**value)
    if type(fence.generation) is not int or not isinstance(fence.installation, str):
        raise ValueError
    return fence


def _record(row: dict[str, Any]) -> Record:
    if row["state"] not in get_args(ReportedState):
        raise ValueError(f"unknown state {row['state']!r}")
    ending = row["ending_since"]
    return Record(
        **row
        | {
            "nodes": tuple(row["nodes"]),
            "devices": tuple(row["devices"]),
            "since": time_from_json(row["since"], "since"),
            "ending_since": None if ending is None else time_from_json(ending, "ending_since"),
        }
    )


def _locked(path: Path) -> TextIO:
    file = path.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise AnotherWorker(f"Another node worker already uses {path.parent}.") from None
    return file


def _write_atomically(path: Path, document: Mapping[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    with fresh.open("w") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
