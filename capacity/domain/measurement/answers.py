"""Why a judgement is what it is, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..phrases import number
from .figures import plain
from .level import level
from .slo_text import slo_text
from .types import Kind, Slo, Stage, Sweep
from .verdict import Verdict
from .weak import few_requests, short

NO_SLO: Final = "No SLO was given, so this is a curve and no measurement."
NO_SUCCESS: Final = "No request succeeded at any level, so there is nothing to measure."
NO_LATENCY: Final = "There is no latency in it, so no SLO can be judged: the concurrency must be stated by a person."
NO_LEVEL: Final = "No stage says how many requests were in flight, so no concurrency can be told."


def nothing_proven(lowest: Verdict | None) -> str:
    if lowest is None:
        return NO_LEVEL
    return f"Nothing is proven at the lowest level, {_in_flight(lowest.stage)}: {lowest.said}."


def under_one(stage: Stage, replicas: int) -> str:
    return f"{_in_flight(stage)} over {replicas} replicas is less than one request for each, so it measures none of them."


def no_tokens(stage: Stage) -> str:
    return f"The stage of {_in_flight(stage)} decides, and the file does not say its output tokens per second."


def why(kind: Kind, chosen: Verdict, ended_by: Verdict | None, sweep: Sweep, slo: Slo, replicas: int) -> str:
    text = slo_text(slo)
    if kind == "never_met":
        said = f"The lowest level, {_in_flight(chosen.stage)}, misses {text}: {chosen.said}"
    else:
        said = f"{_in_flight(chosen.stage)} meets {text} ({chosen.said}); {_above(ended_by)}"
    return f"{said}{_lucky(sweep)}{_unplaced(sweep)}{_divided(replicas)}{_weak(sweep)}."


def _above(ended_by: Verdict | None) -> str:
    if ended_by is None:
        return "nothing above was measured"
    if ended_by.outcome == "fails":
        return f"the next level, {_in_flight(ended_by.stage)}, misses it: {ended_by.said}"
    return f"nothing above is proven: at {_in_flight(ended_by.stage)}, {ended_by.said}"


def _lucky(sweep: Sweep) -> str:
    lucky = [stage for stage in sweep.stages if "non_monotonic" in stage.flags]
    if not lucky:
        return ""
    return f"; {', '.join(_in_flight(stage) for stage in lucky)} above a missed level does not count"


def _unplaced(sweep: Sweep) -> str:
    count = sum(level(stage) is None for stage in sweep.stages)
    if not count:
        return ""
    return f"; {count} stage{'s' if count > 1 else ''} without a known level {'do' if count > 1 else 'does'} not count"


def _divided(replicas: int) -> str:
    return f"; both numbers are divided by {replicas} replicas" if replicas > 1 else ""


def _weak(sweep: Sweep) -> str:
    weak = [stage for stage in sweep.stages if "weak" in stage.flags]
    if not weak:
        return ""
    is_ = "is" if len(weak) == 1 else "are"
    return f"; {len(weak)} of {number(len(sweep.stages), 'level')} {is_} weak{_why_weak(weak)}"


def _why_weak(weak: Sequence[Stage]) -> str:
    """What all of them have too little of; empty where they differ."""
    requests = [stage.requests for stage in weak if stage.requests is not None and few_requests(stage)]
    if len(requests) == len(weak):
        return _each(min(requests), max(requests), "request", len(weak))
    seconds = [round(stage.seconds) for stage in weak if stage.seconds is not None and short(stage)]
    return _each(min(seconds), max(seconds), "second", len(weak)) if len(seconds) == len(weak) else ""


def _each(least: int, most: int, unit: str, count: int) -> str:
    said = number(most, unit) if least == most else f"{least} to {number(most, unit)}"
    return f": {said}{' each' if count > 1 else ''}"


def _in_flight(stage: Stage) -> str:
    found = level(stage)
    return f"{plain(found)} in flight" if found is not None else "an unknown level"
