"""Sweeps as tests of storing and of pages need them: three levels of which the highest misses the SLO."""

from __future__ import annotations

from typing import Any

from capacity.domain.measurement.judge import judge
from capacity.domain.measurement.slo_text import parse_slo
from capacity.domain.measurement.types import Judgement, Setting, Slo, Stage, Sweep

SLO = parse_slo("ttft p95 500")
LEVELS = ((1, 100.0, 50.0), (2, 190.0, 80.0), (4, 300.0, 900.0))
"""Requests in flight, tokens/s, TTFT p95 in ms."""


def make_stage(level: int, tokens: float, ttft: float, **fields: Any) -> Stage:
    told = {"where": f"run of {level}", "asked": level, "mean_in_flight": level - 0.02, "requests": 600, "errors": 0, **fields}
    return Stage(seconds=60.0, tokens_per_second=tokens, ttft_ms={"p50": ttft / 2, "p95": ttft}, **told)


def make_sweep(*levels: tuple[int, float, float], **setting: Any) -> Sweep:
    told = {"tool": "made", "input_tokens": 512, "output_tokens": 128, **setting}
    return Sweep(setting=Setting(**told), stages=tuple(make_stage(*level) for level in levels or LEVELS))


def judged(*levels: tuple[int, float, float], slo: Slo | None = SLO, **setting: Any) -> Judgement:
    return judge(make_sweep(*levels, **setting), slo)
