"""inference-perf (kubernetes-sigs): one report a stage, all times in seconds. Its summary mixes the stages; that is no level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capacity.bench.formats import values
from capacity.bench.formats.contract import Opened
from capacity.domain.measurement.types import Contents, Setting, Skipped, Stage

NAME: Final = "inference-perf"

_INSTEAD: Final = "Import the stage_N_lifecycle_metrics.json files."

_KEPT_UP: Final = 0.95
"""The client that sent less than this share of the asked rate was at its own limit."""


def recognises(opened: Opened) -> bool:
    return values.any_is(opened, _is_report)


def read(opened: Opened) -> Contents:
    return values.each(opened, NAME, _is_report, _row)


def _is_report(document: Any) -> bool:
    return isinstance(document, Mapping) and all(
        isinstance(document.get(part), Mapping) for part in ("load_summary", "successes", "failures")
    )


def _no_stage(load: Mapping[str, Any]) -> str | None:
    """What the report is where it is none of a stage."""
    if not load:
        return f"it is what {NAME} asked of Prometheus, the server's own view over a wider window. {_INSTEAD}"
    if "requested_rate" not in load and "concurrency" not in load:
        return f"it is the summary of {NAME}, a mean over all stages and no level. {_INSTEAD}"
    return None


def _row(where: str, report: Mapping[str, Any]) -> values.Row:
    done, load = report["successes"], report["load_summary"]
    if why := _no_stage(load):
        return Skipped(where=where, why=why)
    requests, errors = values.count(done.get("count")), values.count(values.at(report, "failures", "count"))
    if nothing := values.unfinished(where, requests, errors):
        return nothing
    rate = values.positive(values.at(done, "throughput", "requests_per_sec"))
    tokens, embedded = _tokens(done)
    asked = values.level(load.get("concurrency"))
    stage = Stage(
        where=where,
        asked=asked,
        mean_in_flight=values.product(rate, values.positive(values.at(done, "latency", "request_latency", "mean"))),
        requests=requests,
        errors=errors,
        seconds=values.positive(report.get("benchmark_time_seconds")) or values.ratio(requests, rate),
        tokens_per_second=tokens,
        ttft_ms=_ms(done, "time_to_first_token"),
        tpot_ms=_ms(done, "time_per_output_token"),
        e2e_ms=_ms(done, "request_latency"),
        flags=values.flags(errors, weak=asked is None and _fell_behind(load), input_tokens=embedded),
    )
    return _setting(done), stage


def _ms(done: Mapping[str, Any], name: str) -> dict[str, float]:
    return values.statistics(values.at(done, "latency", name), 1e3)


def _tokens(done: Mapping[str, Any]) -> tuple[float | None, bool]:
    """Output tokens/s; of embeddings, which have none, input tokens/s, and that it is so."""
    output = values.amount(values.at(done, "throughput", "output_tokens_per_sec"))
    if output == 0 and values.amount(values.at(done, "output_len", "mean")) == 0:
        return values.positive(values.at(done, "throughput", "input_tokens_per_sec")), True
    return output or None, False


def _fell_behind(load: Mapping[str, Any]) -> bool:
    sent = values.ratio(values.amount(load.get("achieved_rate")), values.positive(load.get("requested_rate")))
    return sent is not None and sent < _KEPT_UP


def _setting(done: Mapping[str, Any]) -> Setting:
    return Setting(
        tool=NAME,
        input_tokens=values.rounded(values.at(done, "prompt_len", "mean")),
        output_tokens=values.rounded(values.at(done, "output_len", "mean")),
        drawn=True,
    )
