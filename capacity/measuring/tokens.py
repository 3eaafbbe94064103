"""Bearer tokens of endpoints outside: in Redis from the asking until the sweep begins, never in a row, page or log."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Final

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
        return bool(redis_client().set(_key(run), token, ex=KEEP))
    except RedisError:
        return False


def take(run: BenchRun) -> str | None:
    """It is gone from Redis afterwards. None: it is not kept any more, or Redis is away."""
    try:
        found = redis_client().getdel(_key(run))
    except RedisError:
        return None
    return found.decode("ascii", "replace") if isinstance(found, bytes) else None


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


def _key(run: BenchRun) -> str:
    return f"llmgw:bench:token:{settings.INSTALLATION_ID}:{run.pk}"
