"""Logs of engines: bounded on disk, their last words fit to be shown.

An engine writes straight into its file (opened to append), so that it lives on when the worker is gone; the bound is
kept by copying the end of the file away and cutting it.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

TAIL_BYTES = 16_000
MAX_FILE_BYTES = 4_000_000
MAX_MESSAGE_CHARACTERS = 2_000
KEEP_SECONDS = 86_400

# Every repetition is bounded: engines write what they like, and no line may hold up the worker.
_SECRETS = (
    (re.compile(r"(?i)\b(bearer|basic)\s{1,4}[A-Za-z0-9._~+/=-]{6,}"), r"\1 ***"),
    (re.compile(r"(?i)\b([a-z][a-z0-9+]{0,19}://)[^/\s@]{1,300}@"), r"\1***@"),
    (re.compile(r"\b(?:hf|sk|ghp|gho|glpat|xox[abp]|nvapi)[_-][A-Za-z0-9_-]{8,}"), "***"),
    (
        re.compile(
            r"(?i)((?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)"
            r"[\w-]{0,40}[\"']?\s{0,4}[=:]\s{0,4}[\"']?)(?!\d+(?:\.\d+)?\b)[^\s\"',;&]{4,}"
        ),
        r"\1***",
    ),
)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def masked(text: str) -> str:
    """The text without what looks like a password, token or key."""
    for pattern, put in _SECRETS:
        text = pattern.sub(put, text)
    return text


def tail(path: Path, size: int = TAIL_BYTES) -> str:
    """The last bytes of a log as safe text: whole characters, no control codes, secrets masked; empty where there is none."""
    try:
        with path.open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            start = file.seek(max(0, length - size))
            content = file.read(size)
    except OSError:
        return ""
    if start:  # a cut line could show the second half of a secret whose name was cut off
        content = content.partition(b"\n")[2] or content
    text = _ESCAPES.sub("", content.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n"))
    return masked(_UNPRINTABLE.sub("", text))


def last_words(path: Path) -> str:
    """The last lines of a log, at most 2,000 characters, begun at the start of a line where that is possible."""
    text = tail(path).strip()
    if len(text) <= MAX_MESSAGE_CHARACTERS:
        return text
    end = text[-MAX_MESSAGE_CHARACTERS:]
    return end.partition("\n")[2] or end


def bound(path: Path, max_bytes: int = MAX_FILE_BYTES) -> None:
    """Cut a log that has grown past the bound; its last `max_bytes` go to PATH.1. Lines written meanwhile may be lost."""
    try:
        size = path.stat().st_size
        if size <= max_bytes:
            return
        with path.open("rb") as file:
            file.seek(size - max_bytes)
            path.with_suffix(".log.1").write_bytes(file.read(max_bytes))
        os.truncate(path, 0)
    except FileNotFoundError:
        return


def prune(folder: Path, kept: set[Path]) -> None:
    """Delete logs of replicas that are gone and have not been written to for a day."""
    for path in folder.glob("*.log*"):
        if path.with_suffix(".log" if path.suffix == ".log" else "") in kept:
            continue
        try:
            if time.time() - path.stat().st_mtime > KEEP_SECONDS:
                path.unlink()
        except FileNotFoundError:
            continue
