"""Every setting that an operator may give by environment variable, read once and checked together."""

from __future__ import annotations

import os
import re
import secrets
import uuid
from pathlib import Path
from urllib.parse import urlsplit

from environs import Env, ValidationError
from environs import validate as rule

BASE_DIR = Path(__file__).resolve().parent.parent

INSTALLATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
OPTIONAL = re.compile(rf"(?:{INSTALLATION.pattern})?\Z")


def plain_url(text: str) -> None:
    """http or https with a host, and without a password, a query or a fragment: those would be shown."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        raise ValidationError("This is not a URL.") from None
    if text and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ValidationError("A URL starts with http:// or https:// and names a host.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValidationError("The URL must not carry a user, a password, a query or a fragment.")


def readable_file(text: str) -> None:
    """Nothing, or the path of a file with text in it."""
    try:
        _ = text and Path(text).read_text()
    except (OSError, ValueError):
        raise ValidationError("There is no file that can be read.") from None


env = Env(eager=False)
VAR: Path = env.path("LLMGW_VAR", BASE_DIR / "var")
SECRET_KEY: str = env.str("LLMGW_SECRET_KEY", "")
DEBUG: bool = env.bool("LLMGW_DEBUG", False)
HOSTS: list[str] = env.list("LLMGW_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
TRUSTED_ORIGINS: list[str] = env.list("LLMGW_TRUSTED_ORIGINS", [])
HTTPS: bool = env.bool("LLMGW_HTTPS", False)
DATABASE_URL: str = env.str("DATABASE_URL", "")
REDIS_URL: str = env.str("REDIS_URL", "")
LOG_LEVEL: str = env.str("LLMGW_LOG_LEVEL", "INFO", validate=rule.OneOf(["DEBUG", "INFO", "WARNING", "ERROR"]))
PASS_SECONDS: int = env.int("LLMGW_PASS_SECONDS", 15, validate=rule.Range(1, 300))
SCRAPE_SECONDS: int = env.int("LLMGW_SCRAPE_SECONDS", 5, validate=rule.Range(1, 60))
INSTALLATION_ID: str = env.str("LLMGW_INSTALLATION_ID", "", validate=rule.Regexp(OPTIONAL, error="Letters, digits and . _ -"))
ALLOW_LINK_LOCAL: bool = env.bool("LLMGW_ALLOW_LINK_LOCAL", False)
PROMETHEUS_URL: str = env.str("LLMGW_PROMETHEUS_URL", "", validate=plain_url)
PROMETHEUS_TOKEN: str = env.str("LLMGW_PROMETHEUS_TOKEN", "")
PROMETHEUS_TOKEN_FILE: str = env.str("LLMGW_PROMETHEUS_TOKEN_FILE", "", validate=readable_file)
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


def prometheus_token() -> str:
    """The bearer token for the Prometheus server, from its file where one is named; empty: none is sent."""
    return Path(PROMETHEUS_TOKEN_FILE).read_text().strip() if PROMETHEUS_TOKEN_FILE else PROMETHEUS_TOKEN
