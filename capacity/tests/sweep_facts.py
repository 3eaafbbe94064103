"""Stages and sweeps for tests of the judging: short to write, and drawn by Hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from capacity.domain.measurement.combine import sweeps
from capacity.domain.measurement.types import Bound, Contents, Setting, Slo, Stage, Sweep

SETTING = Setting(tool="a tool", model="m")
TTFT = Slo(bounds=(Bound(latency="ttft", percentile=95, ms=200),))


def stage(level: int | None = 8, p95: float | None = 100, **facts: Any) -> Stage:
    """A long stage without errors: `level` in flight as asked and as measured, TTFT p95 in ms."""
    usual: dict[str, Any] = {
        "where": f"c{level}.json",
        "asked": level,
        "mean_in_flight": None if level is None else float(level),
        "requests": 1000,
        "errors": 0,
        "seconds": 60.0,
        "tokens_per_second": 100.0 * (level or 1),
        "ttft_ms": {} if p95 is None else {"p95": p95},
    }
    return Stage(**{**usual, **facts})


def sweep(*stages: Stage, setting: Setting = SETTING) -> Sweep:
    (found,) = sweeps([contents(stages, setting)])
    return found


def contents(stages: Sequence[Stage], setting: Setting = SETTING) -> Contents:
    return Contents(stages=tuple((setting, found) for found in stages))


MS = st.sampled_from([1.0, 50.0, 199.9, 200.0, 200.1, 900.0])
STATISTICS = st.dictionaries(st.sampled_from(["mean", "p50", "p90", "p95", "p99"]), MS, max_size=4)


@st.composite
def stages(draw: st.DrawFn) -> Stage:
    """Any stage: few levels, so that repeats and ties meet; anything may be unknown."""
    asked = draw(st.none() | st.sampled_from([1, 2, 4, 16]))
    mean = draw(st.none() | st.sampled_from([0.4, 1.9, 2.0, 3.7, 12.0, 15.3]))
    drawn = Stage(
        where=draw(st.sampled_from(["a", "b", "c"])),
        asked=asked,
        mean_in_flight=mean if mean is None or asked is None else min(mean, float(asked)),
        requests=draw(st.none() | st.sampled_from([0, 3, 100, 1000])),
        errors=draw(st.none() | st.sampled_from([0, 1, 500])),
        seconds=draw(st.none() | st.sampled_from([5.0, 60.0])),
        tokens_per_second=draw(st.none() | st.sampled_from([0.0, 10.5, 700.0])),
        ttft_ms=draw(STATISTICS),
        tpot_ms=draw(STATISTICS),
    )
    return drawn if not draw(st.booleans()) else replace(drawn, flags=frozenset({"simulated"}))


SETTINGS = st.sampled_from(
    [SETTING, Setting(tool="a tool", model="n"), Setting(tool="a tool", model="m", input_tokens=100, output_tokens=10)]
)
CONTENTS = st.lists(st.tuples(SETTINGS, stages()), max_size=5).map(lambda rows: Contents(stages=tuple(rows)))
BOUNDS = st.builds(Bound, latency=st.sampled_from(["ttft", "tpot"]), percentile=st.sampled_from([50, 90, 95]), ms=MS)
SLOS = st.lists(BOUNDS, min_size=1, max_size=2, unique_by=lambda bound: bound.latency).map(lambda found: Slo(bounds=tuple(found)))
