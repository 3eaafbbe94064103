"""Several result files as sweeps, with a reason for each row and file that was left out. Stores nothing, knows no models."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capacity.bench.formats.contract import Unreadable
from capacity.bench.formats.registry import read_file
from capacity.domain.measurement.combine import sweeps
from capacity.domain.measurement.types import Contents, Skipped, Sweep
from quotas.refusals import in_one_line

MOST_FILES: Final = 500
MOST_RUNS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """A file that something was read of: what the person calls it, and its SHA-256 in hex."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """`sweeps` empty: nothing was read, and `unread` says of each file why. `skipped`: rows of files that were read."""

    sweeps: tuple[Sweep, ...]
    skipped: tuple[Skipped, ...] = ()
    unread: tuple[Skipped, ...] = ()
    files: tuple[ReadFile, ...] = ()


def read_files(
    paths: Sequence[Path], names: Sequence[str] | None = None, reader: Callable[[Path, str], Contents] = read_file
) -> Imported:
    """`names`: what the person calls each file, where that is not its path. Unreadable where there are too many of them, or of
    the runs in them."""
    if len(paths) > MOST_FILES:
        raise Unreadable(f"At most {MOST_FILES} files are read at once, not {len(paths)}.")
    contents: list[Contents] = []
    unread: list[Skipped] = []
    files: list[ReadFile] = []
    for path, name in zip(paths, map(in_one_line, names or map(str, paths)), strict=True):
        try:
            contents.append(reader(path, name))
        except Unreadable as why:
            unread.append(Skipped(where=name, why=str(why)))
        else:
            files.append(ReadFile(name=name, sha256=_sha256(path)))
    _must_be_few(contents)
    skipped = tuple(row for held in contents for row in held.skipped)
    return Imported(sweeps=tuple(sweeps(contents)), skipped=skipped, unread=tuple(unread), files=tuple(files))


def _must_be_few(contents: Sequence[Contents]) -> None:
    runs = sum(len(held.stages) + len(held.skipped) for held in contents)
    if runs > MOST_RUNS:
        raise Unreadable(f"At most {MOST_RUNS} runs are read at once, and the files hold {runs}.")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
