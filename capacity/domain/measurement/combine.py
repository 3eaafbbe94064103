"""The stages of many files as sweeps: equal settings together, the same run once, repeats of a level as one stage.

The order of files and stages changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from .lengths import apart
from .level import error_share, level
from .sound import sound
from .types import LATENCIES, Contents, Setting, Stage, Statistics, Sweep

Row = tuple[Setting, Stage]

ROUNDING: Final = 1e-3
"""One run in two forms, JSON and CSV, differs by what the second rounds."""
ROUNDED: Final = 0.006
ENOUGH: Final = 3
"""So many figures that agree are one run; fewer could be chance."""
NAMED: Final = 3


def sweeps(contents: Iterable[Contents]) -> list[Sweep]:
    """One sweep for each setting, in the order of their settings."""
    kinds: dict[Setting, list[Row]] = defaultdict(list)
    for held in contents:
        for setting, stage in held.stages:
            kinds[_without_lengths(setting)].append((setting, sound(stage)))
    found = [_sweep(rows) for kind in _without_echoes(kinds) for rows in apart(kind)]
    return sorted(found, key=lambda sweep: (_order(sweep.setting), _facts(sweep.stages[0])))


def _without_echoes(kinds: Mapping[Setting, list[Row]]) -> list[list[Row]]:
    """Rows by setting, without a run in a form that names no model (AIPerf's CSV) where it stands in one that does as well."""
    kept = []
    for setting, rows in kinds.items():
        fuller = [other for known, others in kinds.items() if _says_less(setting, known) for _, other in others]
        kept.append([row for row in rows if not any(_is_same_run(row[1], other) for other in fuller)])
    return [rows for rows in kept if rows]


def _says_less(one: Setting, other: Setting) -> bool:
    """Whether `one` leaves the model out and agrees with `other` in all that it says."""
    if one.model is not None or other.model is None or one.tool != other.tool:
        return False
    return all(mine is None or mine == theirs for mine, theirs in zip(_words(one), _words(other), strict=True))


def _words(setting: Setting) -> tuple[str | None, ...]:
    made_with = (setting.tool_version, setting.engine, setting.engine_version)
    return (*made_with, setting.hardware, setting.dataset, setting.variant)


def _sweep(rows: Sequence[Row]) -> Sweep:
    levels: dict[Any, list[Stage]] = defaultdict(list)
    for _, stage in rows:
        levels[_level_key(stage)].append(stage)
    stages = [_one(_once(runs)) for runs in levels.values()]
    return Sweep(setting=_common([setting for setting, _ in rows]), stages=tuple(sorted(stages, key=by_level)))


def by_level(stage: Stage) -> tuple[Any, ...]:
    """Rising level, those without one at the end; for equal levels an order that rests on what was found alone."""
    found = level(stage)
    return (found is None, found or 0.0, _facts(stage), stage.where)


def _level_key(stage: Stage) -> Any:
    """Runs of one setting are one level whatever their means are. A run without a level is alone, but for itself again."""
    return ("asked", stage.asked) if stage.asked is not None else ("level", level(stage) or _facts(stage))


def _once(runs: Sequence[Stage]) -> list[Stage]:
    """Each run once: the same file twice, or one run in two forms, of which the one that says more stays."""
    kept: list[Stage] = []
    for run in sorted(runs, key=lambda run: (_facts(run), run.where)):
        if kept and _is_same_run(kept[-1], run):
            kept[-1] = max(kept[-1], run, key=_richness)
        else:
            kept.append(run)
    return kept


def _is_same_run(one: Stage, other: Stage) -> bool:
    if _facts(one) == _facts(other):
        return True
    if one.requests is None or one.requests != other.requests:
        return False
    if any(_differ(getattr(one, name), getattr(other, name)) for name in ("errors", "seconds", "tokens_per_second")):
        return False
    shared = [pair for latency in LATENCIES for pair in _pairs(one.statistics(latency), other.statistics(latency))]
    return len(shared) >= ENOUGH and not any(_differ(a, b) for a, b in shared)


def _differ(one: float | None, other: float | None) -> bool:
    """By more than rounding, where both are known."""
    return one is not None and other is not None and abs(one - other) > max(ROUNDED, ROUNDING * max(one, other))


def _pairs(one: Statistics, other: Statistics) -> list[tuple[float, float]]:
    return [(one[name], other[name]) for name in one if name in other]


def _richness(stage: Stage) -> tuple[int, Any]:
    said = sum(len(stage.statistics(latency)) for latency in LATENCIES)
    return said + sum(value is not None for value in (stage.errors, stage.seconds, stage.mean_in_flight)), _facts(stage)


def _one(runs: Sequence[Stage]) -> Stage:
    """Repeats as one stage: the worse percentiles and error share, the mean tokens a second, the shorter time."""
    if len(runs) == 1:
        return runs[0]
    worst = max(runs, key=lambda run: (-1.0 if (share := error_share(run)) is None else share, -(run.requests or 0)))
    return Stage(
        where=_places([run.where for run in runs]),
        asked=runs[0].asked,
        mean_in_flight=_mean([run.mean_in_flight for run in runs]),
        requests=worst.requests,
        errors=worst.errors,
        incomplete=max((run.incomplete for run in runs if run.incomplete is not None), default=None),
        seconds=min((run.seconds for run in runs if run.seconds is not None), default=None),
        tokens_per_second=_mean([run.tokens_per_second for run in runs]),
        ttft_ms=_worse([run.ttft_ms for run in runs]),
        tpot_ms=_worse([run.tpot_ms for run in runs]),
        e2e_ms=_worse([run.e2e_ms for run in runs]),
        flags=frozenset({"repeated", *(flag for run in runs for flag in run.flags)}),
    )


def _worse(runs: Sequence[Statistics]) -> Statistics:
    """The greatest of each figure that every run has: what one of them lacks is not known to be good there."""
    return {name: max(run[name] for run in runs) for name in runs[0] if all(name in run for run in runs)}


def _mean(values: Sequence[float | None]) -> float | None:
    known = sorted(value for value in values if value is not None)
    return sum(known) / len(known) if known else None


def _places(places: Sequence[str]) -> str:
    distinct = sorted(set(places))
    more = f" and {len(distinct) - NAMED} more" if len(distinct) > NAMED else ""
    return ", ".join(distinct[:NAMED]) + more


def _common(settings: Sequence[Setting]) -> Setting:
    """The setting of all: mean lengths, and each hint with every value that was said."""
    first = min(settings, key=_order)
    return replace(
        first,
        input_tokens=_middle([setting.input_tokens for setting in settings]),
        output_tokens=_middle([setting.output_tokens for setting in settings]),
        drawn=any(setting.drawn for setting in settings),
        hints=_hints([setting.hints for setting in settings]),
    )


def _hints(all_hints: Sequence[Mapping[str, str]]) -> dict[str, str]:
    said: dict[str, set[str]] = defaultdict(set)
    for hints in all_hints:
        for name, text in hints.items():
            said[name].add(text)
    return {name: _places(list(said[name])) for name in sorted(said)}


def _middle(lengths: Sequence[int | None]) -> int | None:
    known = sorted({length for length in lengths if length is not None})
    return known[len(known) // 2] if known else None


def _without_lengths(setting: Setting) -> Setting:
    return replace(setting, input_tokens=None, output_tokens=None, hints={}, drawn=False)


def _order(setting: Setting) -> tuple[Any, ...]:
    words = (setting.tool, setting.tool_version, setting.model, setting.engine, setting.engine_version)
    rest = (setting.hardware, setting.dataset, setting.variant)
    return (*(word or "" for word in (*words, *rest)), setting.input_tokens or 0, setting.output_tokens or 0)


def _facts(stage: Stage) -> tuple[Any, ...]:
    """What was found, apart from the place it was read at; sorts and compares."""
    numbers = (stage.requests, stage.tokens_per_second, stage.seconds, stage.errors, stage.asked, stage.mean_in_flight)
    figures = tuple(tuple(sorted(stage.statistics(latency).items())) for latency in LATENCIES)
    return (
        *((-1.0 if number is None else number) for number in numbers),
        figures,
        tuple(sorted(stage.flags)),
        stage.incomplete or 0,
    )
