"""vLLM `bench serve` (was `benchmark_serving.py`) in all its generations: one object a run, JSON Lines by `--append-result`, the
list of a `bench sweep`'s summary, or a table of the same keys.

Times are ms. `max_concurrent_requests` and `max_output_tokens_per_s` are peaks of one-second buckets and never read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from capacity.bench.formats import values, vllm_load
from capacity.bench.formats.contract import Opened, Unreadable
from capacity.bench.formats.vllm_setting import TableRow, parting_keys, setting
from capacity.domain.measurement.types import Contents, Skipped, Stage

NAME: Final = "vLLM bench serve"
_OFFLINE: Final = (
    "it is vLLM's offline {}: it has no concurrency and no latency of a request that is served, so it measures nothing. "
    "Use `vllm bench serve --max-concurrency N --save-result`."
)
_DASHBOARD: Final = "it is the same run in the shape of PyTorch's dashboard; import the file without `.pytorch` beside it."
_FIRST: Final = 20


def recognises(opened: Opened) -> bool:
    rows = _documents(opened)[:_FIRST]
    return any(_is_run(row) or _is_dashboard(row) or _offline(row) for row in rows)


def read(opened: Opened) -> Contents:
    _refuse_by_name(opened.where)
    return values.contents(_rows(opened))


def _documents(opened: Opened) -> list[Any]:
    """The runs; a table's rows under its heading."""
    if opened.shape != "csv":
        return list(opened.documents) if opened.shape in ("object", "list", "lines") else []
    heading, *rows = opened.documents or [[]]
    if not {"output_throughput", "completed"} <= set(heading):
        return []
    return [TableRow(zip(heading, row, strict=False)) for row in rows if row]


def _refuse_by_name(where: str) -> None:
    """The tool tells these two from runs by their names alone."""
    name = PurePath(where).name
    if name == "warmup.json":
        raise Unreadable("it is the warm-up of a sweep, which is no level; import the runs beside it.")
    if name.endswith(".failure.json"):
        raise Unreadable("it is the note of a run that failed; import the runs beside it.")


def _rows(opened: Opened) -> Iterator[values.Row]:
    documents = _documents(opened)
    parting = parting_keys([document for document in documents if _is_run(document)])
    for place, document in enumerate(documents, start=1):
        where = opened.where if len(documents) == 1 else f"{opened.where}, run {place}"
        yield _row(where, document, parting)


def _row(where: str, run: Any, parting: Sequence[str]) -> values.Row:
    why = _refusal(run)
    if why:
        return Skipped(where=where, why=why)
    requests = values.count(run.get("completed"))
    stage = Stage(
        where=where,
        asked=vllm_load.asked(run),
        mean_in_flight=vllm_load.in_flight(run),
        requests=requests,
        errors=_errors(run, requests),
        seconds=values.positive(run.get("duration")),
        tokens_per_second=_tokens_per_second(run),
        ttft_ms=vllm_load.latency(run, "ttft"),
        tpot_ms=vllm_load.latency(run, "tpot"),
        e2e_ms=vllm_load.latency(run, "e2el"),
        flags=values.flags(_errors(run, requests), **vllm_load.flags(run)),
    )
    return setting(run, parting), stage


def _refusal(run: Any) -> str:
    """Why this row is no stage, empty where it is one."""
    if _offline(run):
        return _OFFLINE.format(_offline(run))
    if _is_dashboard(run):
        return _DASHBOARD
    if not _is_run(run):
        return f"it is no run of {NAME}."
    if run.get("ramp_up_strategy"):
        return "its request rate was ramped up, so it has no one level; run it at fixed rates or with --max-concurrency."
    return _nothing_finished(run)


def _nothing_finished(run: Mapping[str, Any]) -> str:
    """vLLM writes latencies of 0.0 where nothing succeeded: they would meet any SLO."""
    requests = values.count(run.get("completed"))
    if requests and (values.positive(run.get("total_output_tokens")) or values.positive(run.get("output_throughput"))):
        return ""
    errors, asked = _errors(run, requests), values.count(run.get("num_prompts"))
    failed = f"{errors} of its {asked} requests failed" if errors and asked else "no request succeeded"
    return f"{failed} and no token came back, so its latencies and rates say nothing."


def _errors(run: Mapping[str, Any], requests: int | None) -> int | None:
    """Up to 0.11 the file says only how many were asked for and how many came back."""
    failed = values.count(run.get("failed"))
    asked = values.count(run.get("num_prompts"))
    if failed is not None or asked is None or requests is None or asked < requests:
        return failed
    return asked - requests


def _tokens_per_second(run: Mapping[str, Any]) -> float | None:
    found = values.positive(run.get("output_throughput"))
    return found or values.ratio(values.positive(run.get("total_output_tokens")), values.positive(run.get("duration")))


def _is_run(document: Any) -> bool:
    if not isinstance(document, Mapping) or "completed" not in document or "num_prompts" not in document:
        return False
    rate = "output_throughput" in document or "total_token_throughput" in document
    return rate and "mean_ttft_ms" in document and "mean_e2e_latency_ms" not in document


def _is_dashboard(document: Any) -> bool:
    return str(values.at(document, "benchmark", "name")).startswith("vLLM") and isinstance(values.at(document, "metric"), Mapping)


def _offline(document: Any) -> str:
    if not isinstance(document, Mapping):
        return ""
    if {"elapsed_time", "requests_per_second", "tokens_per_second", "num_requests"} <= document.keys():
        return "throughput test"
    return "latency test" if {"avg_latency", "latencies", "percentiles"} <= document.keys() else ""
