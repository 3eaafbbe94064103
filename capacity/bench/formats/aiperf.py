"""AIPerf and GenAI-Perf, the JSON they export: one file a level, each metric with its unit.

`adj_*` and `effective_latency` are never read: they count failed requests as endless or as quick. `inter_token_latency` is a mean
per request, which others call TPOT; `inter_chunk_latency` is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capacity.bench.formats import aiperf_csv, values
from capacity.bench.formats.contract import Opened
from capacity.domain.measurement.types import Contents, Setting, Stage

NAME: Final = "AIPerf"

_WITHOUT_OUTPUT: Final = ("embed", "rank", "rerank")


def recognises(opened: Opened) -> bool:
    return aiperf_csv.recognises(opened) if opened.shape == "csv" else values.any_is(opened, _is_export)


def read(opened: Opened) -> Contents:
    return aiperf_csv.read(opened) if opened.shape == "csv" else values.each(opened, NAME, _is_export, _row)


def _is_export(document: Any) -> bool:
    """A run whose requests all failed lacks their metrics but says whether it was cut off; a scrape of a server has neither."""
    if not isinstance(values.at(document, "input_config"), Mapping):
        return False
    return "was_cancelled" in document or values.at(document, "request_throughput", "unit") is not None


def _row(where: str, export: Mapping[str, Any]) -> values.Row:
    requests, errors = values.count(_mean(export, "request_count")), _errors(export)
    if nothing := values.unfinished(where, requests if requests is not None else _none_ran(export), errors):
        return nothing
    seconds = values.positive(values.product(_mean(export, "benchmark_duration"), _second(export)))
    rate = values.positive(_mean(export, "request_throughput"))
    tokens, embedded = _tokens(export, seconds)
    stage = Stage(
        where=where,
        asked=_asked(export),
        mean_in_flight=_in_flight(export, rate),
        requests=requests,
        errors=errors,
        seconds=seconds or values.ratio(requests, rate),
        tokens_per_second=tokens,
        ttft_ms=_ms(export, "time_to_first_token"),
        tpot_ms=_ms(export, "inter_token_latency"),
        e2e_ms=_ms(export, "request_latency"),
        flags=values.flags(errors, weak=_cut_off(export), input_tokens=embedded),
    )
    return _setting(export), stage


def _mean(export: Mapping[str, Any], metric: str) -> float | None:
    return values.amount(values.at(export, metric, "avg"))


def _ms(export: Mapping[str, Any], metric: str) -> dict[str, float]:
    return values.statistics(export.get(metric), values.ms_per(values.at(export, metric, "unit")))


def _second(export: Mapping[str, Any]) -> float | None:
    factor = values.ms_per(values.at(export, "benchmark_duration", "unit"))
    return values.product(factor, 1e-3)


def _none_ran(export: Mapping[str, Any]) -> int | None:
    """0 where not even one latency was measured: a run whose requests all failed has no counts of finished ones."""
    return None if _ms(export, "request_latency") else 0


def _errors(export: Mapping[str, Any]) -> int | None:
    """AIPerf leaves the count out where no request failed; GenAI-Perf never has one."""
    counted = values.count(_mean(export, "error_request_count"))
    if counted is not None:
        return counted
    listed = [values.count(values.at(error, "count")) for error in values.entries(export.get("error_summary"))]
    if any(listed):
        return sum(found or 0 for found in listed)
    return None if _is_genai_perf(export) else 0


def _is_genai_perf(export: Mapping[str, Any]) -> bool:
    """Only AIPerf says whether a run was cut off."""
    return "aiperf_version" not in export and "was_cancelled" not in export


def _cut_off(export: Mapping[str, Any]) -> bool:
    return export.get("was_cancelled") is True or export.get("is_complete") is False


def _load(export: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was asked for: the profiling phase, the load generator's part of older generations, or perf_analyzer's stimulus."""
    config = export["input_config"]
    phases = [phase for phase in values.entries(config.get("phases")) if isinstance(phase, Mapping)]
    measured = [phase for phase in phases if "warm" not in f"{phase.get('kind')} {phase.get('name')}".lower()]
    for found in (*measured[-1:], config.get("loadgen"), values.at(config, "perf_analyzer", "stimulus")):
        if isinstance(found, Mapping):
            return found
    return {}


def _asked(export: Mapping[str, Any]) -> int | None:
    """In a run by rate the concurrency is only a cap."""
    load = _load(export)
    by_rate = any(values.positive(load.get(key)) for key in ("request_rate", "rate"))
    return None if by_rate else values.level(load.get("concurrency"))


def _in_flight(export: Mapping[str, Any], rate: float | None) -> float | None:
    measured = values.positive(_mean(export, "effective_concurrency"))
    return measured or values.positive(values.product(rate, _ms(export, "request_latency").get("mean"), 1e-3))


def _tokens(export: Mapping[str, Any], seconds: float | None) -> tuple[float | None, bool]:
    """Output tokens/s; for embeddings and ranking input tokens/s, and that it is so."""
    output = values.positive(_mean(export, "output_token_throughput"))
    kind = str(values.at(export, "input_config", "endpoint", "type")).lower()
    if output is not None or not kind.startswith(_WITHOUT_OUTPUT):
        return output, False
    read = values.positive(_mean(export, "input_token_throughput"))
    return read or values.ratio(values.positive(_mean(export, "total_isl")), seconds), True


def _setting(export: Mapping[str, Any]) -> Setting:
    genai = _is_genai_perf(export)
    return Setting(
        tool="GenAI-Perf" if genai else NAME,
        tool_version=values.text(export.get("aiperf_version")),
        model=_model(export["input_config"]),
        input_tokens=values.rounded(_mean(export, "input_sequence_length")),
        output_tokens=values.rounded(_mean(export, "output_sequence_length")),
        drawn=any(values.positive(values.at(export, f"{side}_sequence_length", "std")) for side in ("input", "output")),
        dataset=values.text(values.at(export, "input_config", "datasets", 0, "type")),
        hints=values.hints(
            began=values.text(export.get("start_time")), ended=values.text(export.get("end_time")), **_client_gpus(export)
        ),
    )


def _model(config: Mapping[str, Any]) -> str | None:
    models = values.at(config, "models")
    named = (
        values.at(models, "items", 0, "name"),
        values.at(models, 0),
        values.at(models, 0, "name"),
        values.at(config, "endpoint", "model_names", 0),
        values.at(config, "model_names", 0),
    )
    return next((found for name in named if (found := values.text(name))), None)


def _client_gpus(export: Mapping[str, Any]) -> dict[str, Any]:
    """GPUs that the client could see: its own node's, which need not be the server's."""
    endpoints = values.at(export, "telemetry_data", "endpoints")
    nodes = endpoints.values() if isinstance(endpoints, Mapping) else ()
    cards = [card for node in nodes if isinstance(values.at(node, "gpus"), Mapping) for card in node["gpus"].values()]
    names = sorted({name for card in cards if (name := values.text(values.at(card, "gpu_name")))})
    return {"gpus_on_the_clients_node": f"{len(cards)} × {', '.join(names)}"} if names else {}
