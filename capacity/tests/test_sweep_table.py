"""Judged sweeps as lines of text."""

from __future__ import annotations

from dataclasses import replace

from capacity.domain.measurement.judge import judge
from capacity.domain.measurement.table import lines
from capacity.domain.measurement.types import Skipped

from .sweep_facts import SETTING, TTFT, stage, sweep


def test_a_sweep_is_a_table_with_its_answer_and_what_its_flags_mean() -> None:
    setting = replace(SETTING, input_tokens=5000, variant="night")
    found = judge(sweep(stage(4, seconds=5), stage(8, None, ttft_ms={"p99": 1500}), setting=setting), TTFT)
    assert list(lines([found], [Skipped(where="f, line 2", why="no run.")])) == [
        "m · a tool · 5,000 tokens in, – out · night",
        "in flight  requests  errors  seconds  tokens/s  TTFT p95 ms  TPOT p95 ms  end to end p95 ms  flags",
        "        4     1,000       0        5       400          100            –                  –  weak",
        "        8     1,000       0       60       800            –            –                  –",
        "4 in flight, 400 tokens/s, at least.",
        "4 in flight meets ttft p95 200 (TTFT p95 100 ms); nothing above is proven: at 8 in flight, TTFT p95 is not in the file; "
        "1 of 2 levels is weak: 5 seconds.",
        "weak: short, few requests, cut off, or its client could not keep up",
        "",
        "Left out: f, line 2: no run.",
    ]


def test_where_only_another_percentile_is_known_it_is_shown() -> None:
    found = judge(sweep(stage(4, None, ttft_ms={"p99": 150.0, "mean": 20.0})), TTFT)
    assert "TTFT p99 ms" in list(lines([found], []))[1]
