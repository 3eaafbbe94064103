"""TGI's inference-benchmarker: all runs of a session in one file, times in ms, `token_throughput_secs` of output tokens.

Its `system` names the client's host and is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from capacity.bench.formats import values
from capacity.bench.formats.contract import Opened
from capacity.domain.measurement.types import Contents, Setting, Skipped, Stage

NAME: Final = "TGI inference-benchmarker"

_KEPT_UP: Final = 0.95
_CLOSED: Final = "constantvus"


def recognises(opened: Opened) -> bool:
    return values.any_is(opened, _is_session)


def read(opened: Opened) -> Contents:
    sessions = [document for document in opened.documents if _is_session(document)]
    return values.contents(row for session in sessions for row in _rows(opened.where, session))


def _is_session(document: Any) -> bool:
    return any(_is_result(result) for result in values.entries(values.at(document, "results")))


def _is_result(document: Any) -> bool:
    return isinstance(document, Mapping) and all(key in document for key in ("executor_type", "token_throughput_secs"))


def _rows(where: str, report: Mapping[str, Any]) -> Iterator[values.Row]:
    for place, result in enumerate(values.entries(report.get("results")), start=1):
        name = values.text(values.at(result, "id")) or str(place)
        if not _is_result(result):
            yield Skipped(where=f"{where}, {name}", why=f"it is no result of {NAME}.")
        elif name == "warmup":
            yield Skipped(where=f"{where}, {name}", why="the warm-up is no stage.")
        else:
            yield _row(f"{where}, {name}", result, report)


def _row(where: str, result: Mapping[str, Any], report: Mapping[str, Any]) -> values.Row:
    requests, errors = values.count(result.get("successful_requests")), values.count(result.get("failed_requests"))
    if nothing := values.unfinished(where, requests, errors):
        return nothing
    rate, latency = values.positive(result.get("request_rate")), _ms(result, "e2e_latency_ms")
    closed = str(result.get("executor_type")).replace("_", "").lower() == _CLOSED
    stage = Stage(
        where=where,
        asked=values.level(values.at(result, "config", "max_vus")) if closed else None,
        mean_in_flight=values.positive(values.product(rate, latency.get("mean"), 1e-3)),
        requests=requests,
        errors=errors,
        seconds=values.positive(values.product(values.amount(result.get("duration_ms")), 1e-3)),
        tokens_per_second=values.positive(result.get("token_throughput_secs")),
        ttft_ms=_ms(result, "time_to_first_token_ms"),
        tpot_ms=_ms(result, "inter_token_latency_ms"),
        e2e_ms=latency,
        flags=values.flags(errors, weak=not closed and _fell_behind(result, rate)),
    )
    return _setting(result, report, requests), stage


def _ms(result: Mapping[str, Any], name: str) -> dict[str, float]:
    """An object of statistics; in the first generation flat keys, `time_to_first_token_ms_p90`."""
    flat = {str(key).removeprefix(f"{name}_"): value for key, value in result.items() if str(key).startswith(f"{name}_")}
    return values.statistics(result.get(name) or flat)


def _fell_behind(result: Mapping[str, Any], rate: float | None) -> bool:
    kept = values.ratio(rate, values.positive(values.at(result, "config", "rate")))
    return kept is not None and kept < _KEPT_UP


def _setting(result: Mapping[str, Any], report: Mapping[str, Any], requests: int | None) -> Setting:
    config = report.get("config")
    sent = values.mean_length(result.get("total_tokens_sent"), requests)
    generated = values.mean_length(result.get("total_tokens"), requests)
    asked = [values.rounded(values.at(config, f"{part}_options", "num_tokens")) for part in ("prompt", "decode")]
    return Setting(
        tool=NAME,
        model=values.text(values.at(config, "model_name")) or values.text(values.at(config, "tokenizer")),
        input_tokens=asked[0] or sent,
        output_tokens=asked[1] or generated,
        drawn=None in asked,
        dataset=values.text(values.at(config, "profile")),
        hints=values.hints(
            began=values.text(report.get("start_time")),
            ended=values.text(report.get("end_time")),
            label=values.text(values.at(config, "run_id")),
        ),
    )
