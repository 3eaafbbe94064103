"""Bearer tokens of endpoints outside: in Redis from the asking until the sweep begins, never in a row, page or log.

Redis writes what it is told into files that outlive the key, so they are sealed with the installation's secret key."""

from __future__ import annotations

import base64
import hmac
import re
from datetime import timedelta
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from redis.exceptions import RedisError

from ..models import BenchRun
from ..store import redis_client

KEEP: Final = timedelta(days=1)
"""A sweep that waits longer for its turn has to be asked for anew."""
LONGEST: Final = 4096
TOKEN: Final = re.compile(rf"[\x21-\x7e]{{1,{LONGEST}}}")
FAULT: Final = f"A token is one word of printable ASCII, of at most {LONGEST} characters."


def keep(run: BenchRun, token: str) -> bool:
    """False where Redis does not take it."""
    try:
        return bool(redis_client().set(_key(run), _sealed(run, token), ex=KEEP))
    except RedisError:
        return False


def take(run: BenchRun) -> str | None:
    """It is gone from Redis afterwards. None: it is not kept any more, or Redis is away."""
    try:
        found = redis_client().getdel(_key(run))
    except RedisError:
        return None
    return _opened(run, found) if isinstance(found, bytes) else None


def forget(run: BenchRun) -> None:
    """Where Redis is away it expires by itself."""
    take(run)


def read(path: Path) -> str:
    """The token of a file. `ValueError` with one sentence that says nothing of what the file holds."""
    try:
        with path.open("rb") as file:
            token = file.read(LONGEST + 100).decode("ascii").strip()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or type(error).__name__}.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: {FAULT}") from None
    if not TOKEN.fullmatch(token):
        raise ValueError(f"{path}: {FAULT}")
    return token


def _sealed(run: BenchRun, token: str) -> bytes:
    return _box(run).encrypt(token.encode("ascii"))


def _opened(run: BenchRun, sealed: bytes) -> str | None:
    """None where this installation has not sealed it for this run."""
    try:
        return _box(run).decrypt(sealed).decode("ascii")
    except InvalidToken:
        return None


def _box(run: BenchRun) -> Fernet:
    """Of the secret key and the run: what was sealed for one run opens for no other."""
    key = hmac.digest(settings.SECRET_KEY.encode(), _key(run).encode(), "sha256")
    return Fernet(base64.urlsafe_b64encode(key))


def _key(run: BenchRun) -> str:
    """Known before the run is written: of a profile one run at a time is asked for."""
    return f"llmgw:bench:token:{settings.INSTALLATION_ID}:{run.profile_id}:{run.created_at.isoformat()}"
