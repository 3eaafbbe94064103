"""Every setting that an operator may give by environment variable, read once and checked together."""

from __future__ import annotations

import os
import re
import secrets
import uuid
from pathlib import Path

from environs import Env

BASE_DIR = Path(__file__).resolve().parent.parent

INSTALLATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

env = Env(eager=False)
VAR: Path = env.path("LLMGW_VAR", BASE_DIR / "var")
SECRET_KEY: str = env.str("LLMGW_SECRET_KEY", "")
DEBUG: bool = env.bool("LLMGW_DEBUG", False)
HOSTS: list[str] = env.list("LLMGW_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
TRUSTED_ORIGINS: list[str] = env.list("LLMGW_TRUSTED_ORIGINS", [])
HTTPS: bool = env.bool("LLMGW_HTTPS", False)
DATABASE_URL: str = env.str("DATABASE_URL", "")
REDIS_URL: str = env.str("REDIS_URL", "")
LOG_LEVEL: str = env.str("LLMGW_LOG_LEVEL", "INFO", validate=lambda v: v in {"DEBUG", "INFO", "WARNING", "ERROR"})
PASS_SECONDS: int = env.int("LLMGW_PASS_SECONDS", 15, validate=lambda v: 1 <= v <= 300)
SCRAPE_SECONDS: int = env.int("LLMGW_SCRAPE_SECONDS", 5, validate=lambda v: 1 <= v <= 60)
INSTALLATION_ID: str = env.str("LLMGW_INSTALLATION_ID", "", validate=lambda v: not v or bool(INSTALLATION.fullmatch(v)))
ALLOW_LINK_LOCAL: bool = env.bool("LLMGW_ALLOW_LINK_LOCAL", False)
TIME_ZONE: str = env.str("LLMGW_TIME_ZONE", "UTC")
env.seal()


def secret_key(folder: Path) -> str:
    """The installation's key: from the environment, else made once and kept readable to its owner alone."""
    if SECRET_KEY:
        return SECRET_KEY
    path = folder / "secret_key"
    if path.exists():
        return path.read_text().strip()
    folder.mkdir(parents=True, exist_ok=True)
    key = secrets.token_urlsafe(50)
    path.touch(mode=0o600)
    path.write_text(key)
    return key


def installation_id(folder: Path) -> str:
    """Who writes the pools: from the environment, else made once. Not in the database, so that a copy is told."""
    if INSTALLATION_ID:
        return INSTALLATION_ID
    path = folder / "installation-id"
    if not path.exists():
        _write_once(path, f"{uuid.uuid4()}\n")
    return path.read_text().strip()


def _write_once(path: Path, text: str) -> None:
    """The first of several processes that start at once wins, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text)
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()


def redis_url(folder: Path) -> str:
    """`REDIS_URL`, else the embedded server's URL that the supervisor wrote, else the usual local one."""
    if REDIS_URL:
        return REDIS_URL
    path = folder / "redis" / "url"
    return path.read_text().strip() if path.exists() else "redis://127.0.0.1:6379/0"
