"""A sweep's stages and progress as plain JSON, for the run's row: what pages, API and command show while it runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..bench.asked import Progress
from ..domain.measurement.types import LATENCIES, Stage


def stage_rows(stages: Iterable[Stage]) -> list[dict[str, Any]]:
    """One object a level. `level`: what was asked for, else what was in flight; latencies as ms by statistic."""
    return [stage_row(stage) for stage in stages]


def stage_row(stage: Stage) -> dict[str, Any]:
    return {
        "level": stage.asked if stage.asked is not None else stage.mean_in_flight,
        "mean_in_flight": stage.mean_in_flight,
        "requests": stage.requests,
        "errors": stage.errors,
        "incomplete": stage.incomplete,
        "seconds": stage.seconds,
        "tokens_per_second": stage.tokens_per_second,
        **{latency: dict(stage.statistics(latency)) for latency in LATENCIES},
        "flags": sorted(stage.flags),
    }


def progress_document(found: Progress) -> dict[str, Any]:
    """`levels_done`, `levels_left` and `seconds_left` with what runs now."""
    return {
        "doing": found.doing,
        "level": found.level,
        "levels_done": len(found.stages),
        "levels_left": found.levels_left,
        "seconds_left": None if found.seconds_left is None else round(found.seconds_left),
        "in_flight": found.in_flight,
        "finished": found.finished,
    }
