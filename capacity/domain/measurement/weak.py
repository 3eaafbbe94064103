"""Why a stage says little (pure): it is used all the same, and flagged."""

from __future__ import annotations

from typing import Final

from .figures import plain
from .level import level
from .types import Stage

SHORT_SECONDS: Final = 30
FEW_ROUNDS: Final = 3


def weaknesses(stage: Stage) -> list[str]:
    """Under 30 s, or fewer finished requests than three rounds of its level; empty: neither."""
    found = []
    if stage.seconds is not None and stage.seconds < SHORT_SECONDS:
        found.append(f"{plain(stage.seconds)} s, under {SHORT_SECONDS} s")
    clients = level(stage) or 0
    if stage.requests is not None and stage.requests < FEW_ROUNDS * clients:
        found.append(f"{stage.requests} finished, under {FEW_ROUNDS} × {plain(clients)}")
    return found
