"""Sweeps as documents: the answer of an import (`llmgw.import/1`), and the evidence that a measurement keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .level import shown_level
from .slo_text import slo_text
from .types import LATENCIES, SHOWN, Judgement, Measured, Setting, Skipped, Slo, Stage, Statistics

IMPORT_FORMAT: Final = "llmgw.import/1"
EVIDENCE_FORMAT: Final = "llmgw.evidence/1"


def import_document(judgements: Sequence[Judgement], skipped: Sequence[Skipped]) -> dict[str, Any]:
    return {
        "format": IMPORT_FORMAT,
        "sweeps": [sweep_document(judgement) for judgement in judgements],
        "skipped": [{"where": row.where, "why": row.why} for row in skipped],
    }


def sweep_document(judgement: Judgement) -> dict[str, Any]:
    setting = judgement.sweep.setting
    return {
        "tool": setting.tool,
        "model": setting.model,
        "hardware": setting.hardware,
        "stages": [stage_document(stage) for stage in judgement.sweep.stages],
        "measurement": None if judgement.measured is None else measured_document(judgement.measured),
        "why": judgement.why,
    }


def measured_document(measured: Measured) -> dict[str, Any]:
    return {
        "max_concurrency": measured.max_concurrency,
        "tokens_per_second": measured.tokens_per_second,
        "kind": measured.kind,
    }


def stage_document(stage: Stage) -> dict[str, Any]:
    """`concurrency` is the mean in flight, else what was asked for. What the file does not say is null."""
    return {
        "concurrency": shown_level(stage),
        "requests": stage.requests,
        "errors": stage.errors,
        "seconds": stage.seconds,
        "tokens_per_second": stage.tokens_per_second,
        **{f"{latency}_ms": _shown(stage.statistics(latency)) for latency in LATENCIES},
        "flags": sorted(stage.flags),
    }


def evidence_of(
    judgement: Judgement,
    *,
    slo: Slo | None,
    replicas: int = 1,
    files: Sequence[Mapping[str, str]] = (),
    cache_hit_rate: float | None = None,
) -> dict[str, Any]:
    """Everything that the answer rests on, as plain JSON. `files`: `name` and `sha256` of each. `cache_hit_rate` 0–1, None
    unknown. `capacity.domain.measurement.evidence.sweep_of` reads it back."""
    return {
        "format": EVIDENCE_FORMAT,
        "setting": setting_document(judgement.sweep.setting),
        "slo": slo_text(slo) if slo else None,
        "max_error_share": slo.max_error_share if slo else None,
        "replicas": replicas,
        "chosen_concurrency": None if judgement.chosen is None else shown_level(judgement.chosen),
        "kind": None if judgement.measured is None else judgement.measured.kind,
        "why": judgement.why,
        "stages": [_whole_stage(stage) for stage in judgement.sweep.stages],
        "input_tokens": judgement.sweep.setting.input_tokens,
        "output_tokens": judgement.sweep.setting.output_tokens,
        "cache_hit_rate": cache_hit_rate,
        "files": [{"name": file["name"], "sha256": file["sha256"]} for file in files],
    }


def setting_document(setting: Setting) -> dict[str, Any]:
    return {
        "tool": setting.tool,
        "tool_version": setting.tool_version,
        "model": setting.model,
        "engine": setting.engine,
        "engine_version": setting.engine_version,
        "hardware": setting.hardware,
        "input_tokens": setting.input_tokens,
        "output_tokens": setting.output_tokens,
        "drawn": setting.drawn,
        "dataset": setting.dataset,
        "variant": setting.variant,
        "hints": dict(setting.hints),
    }


def _whole_stage(stage: Stage) -> dict[str, Any]:
    """The stage of an import's answer, with where it was read, what was asked for, and every percentile that the file has."""
    return {
        **stage_document(stage),
        "where": stage.where,
        "asked": stage.asked,
        "mean_in_flight": stage.mean_in_flight,
        "incomplete": stage.incomplete,
        **{f"{latency}_ms": {**_shown(found), **found} for latency in LATENCIES for found in [stage.statistics(latency)]},
    }


def _shown(statistics: Statistics) -> dict[str, float | None]:
    return {name: statistics.get(name) for name in SHOWN}
