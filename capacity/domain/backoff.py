"""How long a profile that fails on a node rests there: 1, 2, 4 … 30 minutes. Ten ready minutes clear it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

LONGEST = timedelta(minutes=30)
CLEARED_AFTER = timedelta(minutes=10)
EXITS = 3
EXIT_WINDOW = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """`failed_start`: it was never ready. Else an exit after it had been ready, which counts at the third in ten minutes."""

    model: str
    profile: str
    node: str
    message: str
    failed_start: bool


def rest(failures: int) -> timedelta:
    """How long after that many failures in a row: 1, 2, 4, 8, 16, 30, 30 … minutes."""
    return min(timedelta(minutes=2 ** min(failures - 1, 10)), LONGEST)


def after(failure: Failure, failures: int, exits: Sequence[str], now: datetime) -> tuple[int, list[str], bool]:
    """(failures, recent exits, whether it rests from now on) after one more failure."""
    if failure.failed_start:
        return failures + 1, list(exits), True
    recent = [at for at in exits if now - datetime.fromisoformat(at) < EXIT_WINDOW] + [now.isoformat()]
    if len(recent) >= EXITS:
        return failures + 1, [], True
    return failures, recent, False
