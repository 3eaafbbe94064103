"""A sweep's stages and progress as plain JSON, for the run's row: what pages, API and command show while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from ..bench.asked import Progress
from ..domain.measurement.figures import plain
from ..domain.measurement.sound import LARGEST
from ..domain.measurement.types import LATENCIES, Stage
from ..domain.measurement.weak import weaknesses
from ..domain.measurement.words import FLAGS, flag_words

COUNTED: Final = ("level", "mean_in_flight", "requests", "errors", "incomplete", "seconds", "tokens_per_second")
PROGRESS: Final = ("level", "levels_done", "levels_left", "seconds_left", "in_flight", "finished")


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


def read_stages(stored: object) -> list[dict[str, Any]]:
    """The rows that `stage_rows` wrote; what somebody else wrote into them has become unknown. Never raises."""
    return [_read_stage(row) for row in stored if isinstance(row, Mapping)] if isinstance(stored, list) else []


def _read_stage(row: Mapping[str, Any]) -> dict[str, Any]:
    flags = row.get("flags")
    return {
        **{name: _number(row.get(name)) for name in COUNTED},
        **{latency: _statistics(row.get(latency)) for latency in LATENCIES},
        "flags": [flag for flag in flags if isinstance(flag, str)] if isinstance(flags, list) else [],
    }


def doubts(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """What is to be known of the levels, each once with the levels that it is of: `Levels 1, 2: simulated: …`."""
    levels: dict[str, list[str]] = {}
    for row in rows:
        for words in flag_words(_flagged(row)):
            levels.setdefault(words, []).append("?" if row["level"] is None else plain(row["level"]))
    return [f"{'Level' if len(found) == 1 else 'Levels'} {', '.join(found)}: {words}" for words, found in levels.items()]


def _flagged(row: Mapping[str, Any]) -> Stage:
    """What its words rest on: weak by its length it is only when it is judged."""
    stage = Stage(where="", asked=row["level"], requests=row["requests"], seconds=row["seconds"])
    weak = {"weak"} if weaknesses(stage) else set()
    return replace(stage, flags=frozenset(flag for flag in {*row["flags"], *weak} if flag in FLAGS))


def read_progress(stored: object) -> dict[str, Any]:
    """As `progress_document` wrote it; empty where it says nothing. Never raises."""
    doing = stored.get("doing") if isinstance(stored, Mapping) else None
    if not isinstance(stored, Mapping) or not isinstance(doing, str):
        return {}
    return {"doing": doing, **{name: _number(stored.get(name)) for name in PROGRESS}}


def _statistics(found: object) -> dict[str, float]:
    known = found.items() if isinstance(found, Mapping) else ()
    return {str(name): value for name, each in known if (value := _number(each)) is not None}


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST:
        return None
    return value
