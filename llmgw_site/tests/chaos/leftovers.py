"""What a run that was killed has left running is ended by the next one. Its folder, with logs and database, stays."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from capacity.node import processes

PREFIX = "llmgw-chaos-"


def new_folder() -> Path:
    """An empty folder that says whose it is."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    _owner(folder).write_text(f"{os.getpid()} {processes.birth_of(os.getpid())}")
    return folder


def end_leftovers() -> None:
    """Of all runs of this user that do not run any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if _is_orphaned(folder):
            _end(folder)


def _owner(folder: Path) -> Path:
    return folder / "owner"


def _is_orphaned(folder: Path) -> bool:
    try:
        pid, birth = _owner(folder).read_text().split()
    except (OSError, ValueError):
        return False  # nobody's that we know
    return processes.birth_of(int(pid)) != birth


def _end(folder: Path) -> None:
    """First those that could start others, then the engines."""
    for process in _of(folder):
        with contextlib.suppress(psutil.Error):
            process.kill()
    for path in (folder / "node").glob("*/replicas/*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            record = json.loads(path.read_text())
            processes.end_leftovers(record["token"])


def _of(folder: Path) -> Iterator[psutil.Process]:
    """The processes whose state lies there: told so by their environment, or at work in it, as Redis is, whose title is
    written over its environment."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get("LLMGW_VAR") == str(folder) or process.cwd() == str(folder / "redis"):
                yield process
