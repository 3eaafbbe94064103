"""Judged sweeps as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from .figures import plain
from .level import shown_level
from .types import LATENCIES, Judgement, Latency, Setting, Skipped, Stage
from .words import FLAGS, LATENCY

UNKNOWN: Final = "unknown"
"""The tool of evidence that names none."""
_COUNTS: Final = ("in flight", "requests", "errors", "seconds", "tokens/s")
_SHOWN: Final = ("p95", "p99", "p90", "p50", "mean")
"""Of each latency the first of these that a stage has."""


def lines(judgements: Sequence[Judgement], skipped: Sequence[Skipped]) -> Iterator[str]:
    """Each sweep, numbered where there are several, with its stages, its measurement and why; then what was left out."""
    for place, judgement in enumerate(judgements, start=1):
        numbered = f"Sweep {place}: " if len(judgements) > 1 else ""
        yield f"{numbered}{title(judgement.sweep.setting)}"
        yield from _columns(_rows(judgement.sweep.stages))
        yield _measurement(judgement)
        yield judgement.why
        yield from _meanings(judgement.sweep.stages)
        yield ""
    for row in skipped:
        yield f"Left out: {row.where}: {row.why}"


def title(setting: Setting) -> str:
    tool = "" if setting.tool == UNKNOWN else setting.tool
    parts = [setting.model or "model not said", tool, setting.engine, setting.hardware, _lengths(setting), setting.variant]
    return " · ".join(part for part in parts if part)


def _lengths(setting: Setting) -> str:
    if setting.input_tokens is None and setting.output_tokens is None:
        return ""
    return f"{_or_dash(setting.input_tokens)} tokens in, {_or_dash(setting.output_tokens)} out"


def _measurement(judgement: Judgement) -> str:
    found = judgement.measured
    if found is None:
        return "No measurement."
    return f"{found.max_concurrency} in flight, {plain(found.tokens_per_second)} tokens/s, {found.kind.replace('_', ' ')}."


def _rows(stages: Sequence[Stage]) -> list[Sequence[str]]:
    figures = [(latency, _figure(stages, latency)) for latency in LATENCIES]
    heading = [*_COUNTS, *(f"{LATENCY[latency]} {figure} ms" for latency, figure in figures), "flags"]
    return [heading, *(_cells(stage, figures) for stage in stages)]


def _figure(stages: Sequence[Stage], latency: Latency) -> str:
    said = {name for stage in stages for name in stage.statistics(latency)}
    return next((name for name in _SHOWN if name in said), _SHOWN[0])


def _cells(stage: Stage, figures: Sequence[tuple[Latency, str]]) -> Sequence[str]:
    counts = (shown_level(stage), stage.requests, stage.errors, stage.seconds, stage.tokens_per_second)
    latencies = (stage.statistics(latency).get(figure) for latency, figure in figures)
    flags = " ".join(flag.replace("_", "-") for flag in sorted(stage.flags))
    return [*(_or_dash(value) for value in (*counts, *latencies)), flags]


def _or_dash(value: float | None) -> str:
    return "–" if value is None else plain(value)


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()


def _meanings(stages: Sequence[Stage]) -> Iterator[str]:
    for flag in sorted({flag for stage in stages for flag in stage.flags}):
        yield f"{flag.replace('_', '-')}: {FLAGS[flag].removeprefix(f'{flag}: ')}"
