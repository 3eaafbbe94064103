"""From a sweep to a measurement: the highest level that meets the SLO with every lower one, of what kind, and why (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from . import answers
from .combine import by_level
from .level import level, whole_level
from .types import LATENCIES, Flag, Judgement, Kind, Measured, Slo, Stage, Sweep
from .verdict import Outcome, Verdict, verdict
from .weak import weaknesses

MOST_REPLICAS: Final = 10_000
OF_JUDGING: Final[frozenset[Flag]] = frozenset({"non_monotonic", "errors"})
"""Flags that rest on the SLO: a sweep that is judged again is given them anew."""
_WORST_FIRST: Final[tuple[Outcome, ...]] = ("fails", "unproven", "meets")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The unbroken run from below: its highest stage, and what ended it."""

    highest: Verdict | None
    ended_by: Verdict | None


def judge(sweep: Sweep, slo: Slo | None, replicas: int = 1) -> Judgement:
    """`replicas`: how many stood behind what was measured; both numbers are divided by it. ValueError where it is below 1."""
    if not 1 <= replicas <= MOST_REPLICAS:
        raise ValueError(f"Replicas behind what was measured: a whole number from 1 to {MOST_REPLICAS}.")
    plain = replace(sweep, stages=tuple(_flagged(stage) for stage in sorted(sweep.stages, key=by_level)))
    refused = _refusal(plain, slo)
    if slo is None or refused:
        return Judgement(sweep=plain, measured=None, why=refused)
    verdicts = sorted((verdict(stage, slo) for stage in plain.stages if level(stage) is not None), key=_order)
    run = _run(verdicts)
    marked = replace(plain, stages=_marked(plain.stages, verdicts))
    return _judgement(marked, run, slo, replicas)


def _refusal(sweep: Sweep, slo: Slo | None) -> str:
    """Why nothing can be judged, empty where it can."""
    if slo is None:
        return answers.NO_SLO
    if not any(stage.requests != 0 for stage in sweep.stages):
        return answers.NO_SUCCESS
    if not any(stage.statistics(latency) for stage in sweep.stages for latency in LATENCIES):
        return answers.NO_LATENCY
    return "" if any(level(stage) is not None for stage in sweep.stages) else answers.NO_LEVEL


def _order(found: Verdict) -> tuple[float, int, float]:
    """Rising level. Of two stages of one level the worse decides, and the fewer tokens count."""
    return level(found.stage) or 0.0, _WORST_FIRST.index(found.outcome), -(found.stage.tokens_per_second or 0.0)


def _run(verdicts: Sequence[Verdict]) -> _Run:
    highest = None
    for found in verdicts:
        if found.outcome != "meets":
            return _Run(highest=highest, ended_by=found)
        highest = found
    return _Run(highest=highest, ended_by=None)


def _judgement(sweep: Sweep, run: _Run, slo: Slo, replicas: int) -> Judgement:
    chosen = run.highest or run.ended_by
    kind = _kind(run)
    if chosen is None or kind is None:
        return Judgement(sweep=sweep, measured=None, why=answers.nothing_proven(chosen))
    stage = next(stage for stage in sweep.stages if _is(stage, chosen.stage))
    whole = (whole_level(stage) or 0) // replicas if kind != "never_met" else 0
    if kind != "never_met" and whole < 1:
        return Judgement(sweep=sweep, measured=None, why=answers.under_one(stage, replicas))
    if stage.tokens_per_second is None:
        return Judgement(sweep=sweep, measured=None, why=answers.no_tokens(stage))
    measured = Measured(max_concurrency=whole, tokens_per_second=stage.tokens_per_second / replicas, kind=kind)
    why = answers.why(kind, chosen, run.ended_by, sweep, slo, replicas)
    return Judgement(sweep=sweep, measured=measured, why=why, chosen=stage)


def _kind(run: _Run) -> Kind | None:
    failed = run.ended_by is not None and run.ended_by.outcome == "fails"
    if run.highest is None:
        return "never_met" if failed else None
    return "located" if failed else "at_least"


def _flagged(stage: Stage) -> Stage:
    """With the flags that rest on no SLO."""
    flags = set(stage.flags - OF_JUDGING)
    if weaknesses(stage):
        flags.add("weak")
    if stage.asked is not None and stage.mean_in_flight is None:
        flags.add("asked")
    if stage.errors is None:
        flags.add("errors_unknown")
    return replace(stage, flags=frozenset(flags))


def _marked(stages: Sequence[Stage], verdicts: Sequence[Verdict]) -> tuple[Stage, ...]:
    """With the flags that rest on the SLO: too many errors, or a lucky stage above one that missed it."""
    missed = next((place for place, found in enumerate(verdicts) if found.outcome == "fails"), len(verdicts))
    added: dict[int, Flag] = {id(found.stage): "errors" for found in verdicts if found.too_many_errors}
    added |= {id(found.stage): "non_monotonic" for found in verdicts[missed:] if found.outcome == "meets"}
    return tuple(replace(stage, flags=stage.flags | {added[id(stage)]}) if id(stage) in added else stage for stage in stages)


def _is(stage: Stage, other: Stage) -> bool:
    return replace(stage, flags=frozenset()) == replace(other, flags=frozenset())
