"""The level of a stage: how many requests were truly in flight."""

from __future__ import annotations

import math
from typing import Final

from .types import Stage

NEAR: Final = 0.10
"""A closed loop whose measured mean is within this share of its setting was at its setting."""


def level(stage: Stage) -> float | None:
    """The setting of a closed loop where the measured mean is within 10 % of it or was not measured, else the mean.

    None where neither is known: a run by rate without latency has no level.
    """
    if stage.mean_in_flight is None:
        return None if stage.asked is None else float(stage.asked)
    if stage.asked is not None and abs(stage.mean_in_flight - stage.asked) <= NEAR * stage.asked:
        return float(stage.asked)
    return stage.mean_in_flight


def whole_level(stage: Stage) -> int | None:
    """The level to the nearest whole number, at least 1 and never above what was asked for."""
    exact = level(stage)
    if exact is None:
        return None
    whole = max(1, math.floor(exact + 0.5))
    return whole if stage.asked is None else min(whole, stage.asked)


def shown_level(stage: Stage) -> float | None:
    """What a list of stages says: the mean that was measured, else what was asked for."""
    return stage.mean_in_flight if stage.mean_in_flight is not None else level(stage)


def error_share(stage: Stage) -> float | None:
    """Errors ÷ (finished + errors), None where the file does not say; what still ran at the end is neither."""
    if stage.errors is None or stage.requests is None:
        return None
    over = stage.requests + stage.errors
    return stage.errors / over if over else None
