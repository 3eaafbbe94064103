"""The state folder and the port: ours alone, writable and free, or a sentence that says what is wrong."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Failed(RuntimeError):
    """A step that did not work; the text is the one sentence that the person reads."""


@contextmanager
def claimed(folder: Path, url: str) -> Iterator[None]:
    """Hold the state folder for one supervisor. Failed where another has it, or where it cannot be written."""
    try:
        for path in (folder, folder / "log", folder / "run"):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (folder / "supervisor.lock").open("a+")
        (folder / "run" / ".probe").write_text("")
        (folder / "run" / ".probe").unlink()
    except OSError as error:
        raise Failed(f"The state folder {folder} cannot be written: {error.strerror}. Choose another with VAR=…") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            holder = lock.read().strip() or "another process"
            raise Failed(f"llmgw runs already on {folder} ({holder}). End that one, or choose another with VAR=…") from error
        lock.truncate(0)
        lock.write(f"process {os.getpid()}, {url}")
        lock.flush()
        yield
        lock.truncate(0)


def check_port(host: str, port: int) -> None:
    """Failed where nobody could listen there."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Failed(f"{host} is no address of this machine: choose another with HOST=…") from error
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except PermissionError as error:
            raise Failed(f"Port {port} is for root alone: choose one above 1023, such as make run PORT=8000.") from error
        except OSError as error:
            raise Failed(_sentence(host, port, error)) from error


def _sentence(host: str, port: int, error: OSError) -> str:
    if error.errno == 98 or "in use" in str(error):
        return f"Port {port} on {host} is taken by another program: choose another, such as make run PORT={port + 1}."
    return f"Nothing can listen on {host}, port {port}: {error.strerror}."
