"""From the answers of one level to its stage (pure)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from capacity.bench.asked import Asked
from capacity.bench.closed_loop import Window
from capacity.bench.stream import Answer
from capacity.domain.measurement.types import Flag, Stage, Statistics
from capacity.domain.measurement.verdict import verdict

PERCENTILES: Final = (50, 90, 95, 99)
BUSY: Final = 0.9
"""With more than that of a core this client may have been what was measured."""
LATE: Final = 0.1
"""A client that is late by more than a tenth of a bound."""


def stage_of(window: Window, asked: Asked, *, simulated: bool = False) -> Stage:
    """Latencies are of the requests that ended well in the window, tokens of all that came in it, to unfinished ones too."""
    good = [answer for answer in window.answers if answer.fault is None]
    percentiles = sorted({*PERCENTILES, *(bound.percentile for bound in asked.slo.bounds)})
    return Stage(
        where=f"level {window.level}",
        asked=window.level,
        mean_in_flight=window.mean_in_flight,
        requests=len(good),
        errors=len(window.answers) - len(good),
        incomplete=window.incomplete,
        seconds=window.seconds,
        tokens_per_second=_tokens(window, good, asked) / window.seconds if good else None,
        ttft_ms=statistics((answer.ttft_seconds for answer in good), percentiles),
        tpot_ms=statistics((answer.tpot_seconds for answer in good), percentiles),
        e2e_ms=statistics((answer.e2e_seconds for answer in good), percentiles),
        flags=_flags(window, good, asked) | ({"simulated"} if simulated else set()),
    )


def fails_by_lag(window: Window, asked: Asked) -> bool:
    """Whether it misses the SLO, and would not were this client's own lateness taken off: nobody can say whose delay it was."""
    stage = stage_of(window, asked)
    if verdict(stage, asked.slo).outcome != "fails":
        return False
    late = 1000 * window.lag_seconds
    on_time = replace(
        stage,
        ttft_ms=_less(stage.ttft_ms, late),
        tpot_ms=_less(stage.tpot_ms, late / _gaps(window)),
        e2e_ms=_less(stage.e2e_ms, late),
    )
    return verdict(on_time, asked.slo).outcome == "meets"


def _less(found: Statistics, late: float) -> Statistics:
    return {name: max(value - late, 1e-3) for name, value in found.items()}


def _gaps(window: Window) -> float:
    """Gaps between the tokens of an answer, over which one late look at its end is spread."""
    tokens = mean(answer.output_tokens for answer in window.answers if answer.fault is None)
    return max(1.0, (tokens or 2) - 1)


def _is_late(window: Window, asked: Asked) -> bool:
    late = 1000 * window.lag_seconds
    return any(late > LATE * bound.ms * (_gaps(window) if bound.latency == "tpot" else 1) for bound in asked.slo.bounds)


def statistics(seconds: Iterable[float | None], percentiles: Sequence[int]) -> dict[str, float]:
    """Seconds → ms: the mean and percentiles by nearest rank, each a value that was truly seen; empty of nothing."""
    values = sorted(1000 * value for value in seconds if value is not None)
    if not values:
        return {}
    ranks = {f"p{percentile}": values[max(0, math.ceil(percentile * len(values) / 100) - 1)] for percentile in percentiles}
    return {"mean": math.fsum(values) / len(values), **ranks}


def details_of(window: Window) -> dict[str, Any]:
    """What a stage has no field for, as plain JSON: chunk gaps, true lengths, kinds of error, this client's own load."""
    good = [answer for answer in window.answers if answer.fault is None]
    kinds = Counter(answer.fault.kind for answer in window.answers if answer.fault is not None)
    return {
        "itl_ms": _rounded(statistics((gap for answer in good for gap in answer.gaps), PERCENTILES)),
        "input_tokens_mean": mean(answer.input_tokens for answer in good),
        "output_tokens_mean": mean(answer.output_tokens for answer in good),
        "chunks_mean": mean(answer.chunks for answer in good),
        "error_kinds": dict(kinds),
        "first_error": next((answer.fault.why for answer in window.answers if answer.fault is not None), None),
        "client_busy": round(window.busy, 3),
        "client_lag_ms": round(1000 * window.lag_seconds, 1),
        "cut_short": window.cut_short,
    }


def mean(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 3) if known else None


def _tokens(window: Window, good: Sequence[Answer], asked: Asked) -> float:
    """A chunk may carry several tokens: those of the window weigh what they weighed in the requests that are whole."""
    if not asked.streams:
        return float(sum(answer.input_tokens or 0 for answer in good))
    chunks = sum(answer.chunks for answer in good)
    return window.chunks * sum(answer.output_tokens or 0 for answer in good) / chunks if chunks else 0.0


def _flags(window: Window, good: Sequence[Answer], asked: Asked) -> frozenset[Flag]:
    flags: set[Flag] = set()
    if not asked.streams:
        flags.add("input_tokens")
    if any(answer.counted for answer in good):
        flags.add("estimated")
    if window.busy > BUSY or window.cut_short or _is_late(window, asked):
        flags.add("weak")
    return frozenset(flags)


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in values.items()}
