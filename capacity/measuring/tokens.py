"""Bearer tokens of endpoints outside: in Redis from the asking until the sweep begins, never in a row, page or log.

Redis writes what it is told into files that outlive the key, so they are sealed with the installation's secret key."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import timedelta
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core import signing
from redis.exceptions import RedisError

from ..models import BenchRun
from ..store import redis_client

KEEP: Final = timedelta(days=1)
"""A sweep that waits longer for its turn has to be asked for anew."""
LONGEST: Final = 4096
NONCE_BYTES: Final = 16
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
    return _opened(run, found.decode("ascii", "replace")) if isinstance(found, bytes) else None


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


def _sealed(run: BenchRun, token: str) -> str:
    nonce = secrets.token_bytes(NONCE_BYTES)
    return signing.dumps((nonce + _mixed(token.encode("ascii"), nonce)).hex(), salt=_key(run))


def _opened(run: BenchRun, sealed: str) -> str | None:
    """None where this installation has not sealed it for this run."""
    try:
        raw = bytes.fromhex(signing.loads(sealed, salt=_key(run)))
    except signing.BadSignature:
        return None
    return _mixed(raw[NONCE_BYTES:], raw[:NONCE_BYTES]).decode("ascii")


def _mixed(data: bytes, nonce: bytes) -> bytes:
    """With a stream of bytes that only the secret key gives, once for each nonce: mixing twice gives the data again."""
    stream = hashlib.shake_256(b"bench token\0" + settings.SECRET_KEY.encode() + b"\0" + nonce).digest(len(data))
    return bytes(one ^ other for one, other in zip(data, stream, strict=True))


def _key(run: BenchRun) -> str:
    return f"llmgw:bench:token:{settings.INSTALLATION_ID}:{run.pk}"
