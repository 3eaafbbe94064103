"""llama-benchy: llama-bench's questions over HTTP, with a concurrency for each test; means and deviations, no percentiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capacity.bench.formats import values
from capacity.bench.formats.contract import Opened
from capacity.domain.measurement.types import Contents, Setting, Skipped, Stage

NAME: Final = "llama-benchy"


def recognises(opened: Opened) -> bool:
    first = values.at(opened.documents[0], "benchmarks", 0) if opened.documents else None
    return isinstance(first, Mapping) and "tg_throughput" in first and "concurrency" in first


def read(opened: Opened) -> Contents:
    document = opened.documents[0]
    tests = enumerate(values.entries(values.at(document, "benchmarks")), 1)
    return values.contents(_row(f"{opened.where}, benchmark {place}", document, test) for place, test in tests)


def _row(where: str, document: Mapping[str, Any], test: Any) -> values.Row:
    if values.at(test, "is_context_prefill_phase"):
        return Skipped(where=where, why="it only fills the context and generates nothing.")
    if (asked := values.level(values.at(test, "concurrency"))) is None:
        return Skipped(where=where, why="it names no concurrency.")
    stage = Stage(
        where=where,
        asked=asked,
        tokens_per_second=values.positive(values.at(test, "tg_throughput", "mean")),
        ttft_ms=values.statistics({"mean": values.at(test, "e2e_ttft", "mean")}),
        flags=values.flags(None),
    )
    return _setting(document, test), stage


def _setting(document: Mapping[str, Any], test: Any) -> Setting:
    prompt, context = (values.count(values.at(test, name)) for name in ("prompt_size", "context_size"))
    return Setting(
        tool=NAME,
        tool_version=values.text(document.get("version")),
        model=values.text(document.get("model")),
        input_tokens=None if prompt is None else values.rounded(prompt + (context or 0)),
        output_tokens=values.rounded(values.at(test, "response_size")),
        variant=f"context {context}" if context else None,
        hints=values.hints(prefix_caching=document.get("prefix_caching_enabled"), began=values.text(document.get("timestamp"))),
    )
