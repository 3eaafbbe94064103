"""LLMPerf (archived): the summary of one level in flat keys, times in seconds; and a table of means that some made of several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capacity.bench.formats import values
from capacity.bench.formats.contract import Opened, Unreadable
from capacity.domain.measurement.types import Contents, Setting, Stage

NAME: Final = "LLMPerf"

_TABLE_MEAN: Final = "first-time-to-token_mean_in_ms"


def recognises(opened: Opened) -> bool:
    return values.any_is(opened, lambda document: _is_summary(document) or _is_table(document) or _is_request(document))


def read(opened: Opened) -> Contents:
    if values.any_is(opened, _is_request):
        raise Unreadable(f"it holds the single requests of {NAME}. Import the summary that lies beside it.")
    if opened.shape == "object" and _is_table(opened.documents[0]):
        return values.contents(_level(f"{opened.where}, {name}", row) for name, row in opened.documents[0].items())
    return values.each(opened, NAME, _is_summary, _summary)


def _is_summary(document: Any) -> bool:
    return isinstance(document, Mapping) and any(str(key).startswith("results_ttft_s") for key in document)


def _is_table(document: Any) -> bool:
    return isinstance(document, Mapping) and bool(document) and all(values.at(row, _TABLE_MEAN) for row in document.values())


def _is_request(document: Any) -> bool:
    return isinstance(document, Mapping) and "request_output_throughput_token_per_s" in document and "ttft_s" in document


def _summary(where: str, found: Mapping[str, Any]) -> values.Row:
    requests, errors = values.count(found.get("results_num_completed_requests")), values.count(found.get("results_number_errors"))
    if nothing := values.unfinished(where, requests, errors):
        return nothing
    rate = values.ratio(values.positive(found.get("results_num_completed_requests_per_min")), 60)
    latencies = {
        name: _ms(found, key) for name, key in (("ttft", "ttft"), ("tpot", "inter_token_latency"), ("e2e", "end_to_end_latency"))
    }
    stage = Stage(
        where=where,
        asked=values.level(found.get("num_concurrent_requests")),
        mean_in_flight=values.product(rate, latencies["e2e"].get("mean"), 1e-3),
        requests=requests,
        errors=errors,
        seconds=values.ratio(requests, rate),
        tokens_per_second=values.positive(found.get("results_mean_output_throughput_token_per_s")),
        ttft_ms=latencies["ttft"],
        tpot_ms=latencies["tpot"],
        e2e_ms=latencies["e2e"],
        flags=values.flags(errors),
    )
    return _setting(found), stage


def _ms(found: Mapping[str, Any], name: str) -> dict[str, float]:
    start = f"results_{name}_s_"
    named = {
        str(key).removeprefix(start).removeprefix("quantiles_"): value
        for key, value in found.items()
        if str(key).startswith(start)
    }
    return values.statistics(named, 1e3)


def _setting(found: Mapping[str, Any]) -> Setting:
    return Setting(
        tool=NAME,
        tool_version=values.text(found.get("version")),
        model=values.text(found.get("model")),
        input_tokens=values.rounded(found.get("mean_input_tokens")),
        output_tokens=values.rounded(found.get("mean_output_tokens")),
        hints=values.hints(provider=values.text(found.get("framework")), ended=values.utc(found.get("timestamp"))),
    )


def _level(where: str, row: Any) -> values.Row:
    """Means alone: a curve of throughput, and nothing that an SLO could be judged by."""
    setting = Setting(
        tool=NAME,
        input_tokens=values.rounded(values.at(row, "input_token_length")),
        output_tokens=values.rounded(values.at(row, "output_token_length")),
    )
    stage = Stage(
        where=where,
        asked=values.level(values.at(row, "concurrency")),
        tokens_per_second=values.positive(values.at(row, "throughput_token_per_s")),
        ttft_ms=values.statistics({"mean": values.at(row, _TABLE_MEAN)}),
        flags=values.flags(None),
    )
    return setting, stage
