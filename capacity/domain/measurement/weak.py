"""Why a stage says little (pure): it is used all the same, and flagged."""

from __future__ import annotations

from typing import Final

from .figures import plain
from .level import level
from .types import Stage

SHORT_SECONDS: Final = 30
FEW_ROUNDS: Final = 3


def short(stage: Stage) -> bool:
    return stage.seconds is not None and stage.seconds < SHORT_SECONDS


def few_requests(stage: Stage) -> bool:
    return stage.requests is not None and stage.requests < FEW_ROUNDS * (level(stage) or 0)


def weaknesses(stage: Stage) -> list[str]:
    """Under 30 s, or fewer finished requests than three rounds of its level; empty: neither."""
    found = []
    if stage.seconds is not None and short(stage):
        found.append(f"{plain(stage.seconds)} s, under {SHORT_SECONDS} s")
    if few_requests(stage):
        found.append(f"{stage.requests} finished, under {FEW_ROUNDS} × {plain(level(stage) or 0)}")
    return found
