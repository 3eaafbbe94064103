"""From the answers of one level to its stage (pure)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from capacity.bench.asked import Asked
from capacity.bench.closed_loop import Window
from capacity.bench.stream import Answer
from capacity.domain.measurement.types import Flag, Stage

PERCENTILES: Final = (50, 90, 95, 99)
BUSY: Final = 0.9
"""With more than that of a core this client may have been what was measured."""


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
    if window.busy > BUSY or window.cut_short:
        flags.add("weak")
    return frozenset(flags)


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in values.items()}
