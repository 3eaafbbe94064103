"""SGLang `bench_serving`: JSON Lines, one run a line, appended for ever. No generation says how many requests failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capacity.bench.formats import values
from capacity.bench.formats.contract import Opened
from capacity.domain.measurement.types import Contents, Setting, Stage

NAME: Final = "SGLang bench_serving"

_DRAWN: Final = ("random", "random-ids", "generated-shared-prefix")


def recognises(opened: Opened) -> bool:
    return values.any_is(opened, _is_run)


def read(opened: Opened) -> Contents:
    return values.each(opened, NAME, _is_run, _row)


def _is_run(document: Any) -> bool:
    if not isinstance(document, Mapping) or "output_throughput" not in document or "backend" not in document:
        return False
    return "total_output_tokens_retokenized" in document or "median_e2e_latency_ms" in document


def _row(where: str, run: Mapping[str, Any]) -> values.Row:
    requests = values.count(run.get("completed"))
    seconds = values.positive(run.get("duration"))
    if nothing := values.unfinished(where, requests, None):
        return nothing
    stage = Stage(
        where=where,
        asked=_asked(run),
        mean_in_flight=_in_flight(run, requests, seconds),
        requests=requests,
        seconds=seconds,
        tokens_per_second=values.positive(run.get("output_throughput")),
        ttft_ms=values.statistics(values.ending(run, "ttft_ms")),
        tpot_ms=values.statistics(values.ending(run, "tpot_ms")),
        e2e_ms=values.statistics(values.ending(run, "e2e_latency_ms")),
        flags=values.flags(None),
    )
    return _setting(run, requests), stage


def _asked(run: Mapping[str, Any]) -> int | None:
    """The cap is a level only where nothing else holds the requests back: with a rate it is just a cap."""
    rate = run.get("request_rate")
    limited = isinstance(rate, str) or (values.number(rate) or values.UNLIMITED) < values.UNLIMITED
    return None if limited and str(rate).lower() not in ("inf", "infinity") else values.level(run.get("max_concurrency"))


def _in_flight(run: Mapping[str, Any], requests: int | None, seconds: float | None) -> float | None:
    """Its own mean; before 0.4.6 by Little's law."""
    measured = values.positive(run.get("concurrency"))
    latency = values.positive(run.get("mean_e2e_latency_ms"))
    return measured or values.positive(values.product(values.ratio(requests, seconds), latency, 1e-3))


def _setting(run: Mapping[str, Any], requests: int | None) -> Setting:
    servers = _servers(run.get("server_info"))
    disaggregated = bool(values.entries(values.at(run, "server_info", "decode")))
    version = next((found for server in servers if (found := values.text(server.get("version")))), None)
    return Setting(
        tool=NAME,
        model=_model(run, servers),
        engine="SGLang" if servers or str(run.get("backend")).startswith("sglang") else None,
        engine_version=version,
        input_tokens=values.mean_length(run.get("total_input_tokens"), requests),
        output_tokens=values.mean_length(run.get("total_output_tokens"), requests),
        drawn=any(values.is_drawn(run.get(f"total_{side}_tokens"), requests) for side in ("input", "output")),
        dataset=_dataset(run),
        variant=_variant(run, servers, disaggregated),
        hints=values.hints(
            label=values.text(run.get("tag")), gpus=_gpus(servers), client=values.text(run.get("backend")), **_parallel(servers)
        ),
    )


def _servers(info: Any) -> list[Mapping[str, Any]]:
    """The engines of the deployment: prefill and decode ones where they are apart, else the one that answered."""
    apart = [*values.entries(values.at(info, "prefill")), *values.entries(values.at(info, "decode"))]
    found = apart or values.entries(values.at(info, "internal_states"))[:1]
    if isinstance(info, Mapping) and "model_path" in info:
        found = [info]
    return [server for server in found if isinstance(server, Mapping)]


def _model(run: Mapping[str, Any], servers: list[Mapping[str, Any]]) -> str | None:
    named = [server.get("model_path") for server in servers] + [run.get("model"), run.get("model_id")]
    return next((found for name in named if (found := values.text(name))), None)


def _dataset(run: Mapping[str, Any]) -> str | None:
    """The name of the data; with the lengths that were asked for where they were drawn, for the means differ from run to run."""
    name = values.text(run.get("dataset_name"))
    if name not in _DRAWN:
        return name
    lengths = [values.count(run.get(f"random_{side}_len")) for side in ("input", "output")]
    return name if None in lengths else f"{name} {lengths[0]} in, {lengths[1]} out"


def _variant(run: Mapping[str, Any], servers: list[Mapping[str, Any]], disaggregated: bool) -> str | None:
    drafts = next((found for server in servers if (found := values.text(server.get("speculative_algorithm")))), None)
    if drafts is None and (values.positive(run.get("accept_length")) or 0) > 1:
        drafts = "on"
    parts = ["prefill and decode apart"] * disaggregated + ([f"speculative decoding {drafts}"] if drafts else [])
    return ", ".join(parts) or None


def _gpus(servers: list[Mapping[str, Any]]) -> int | None:
    known = [found for server in servers if (found := _gpus_of(server))]
    return sum(known) if known and len(known) == len(servers) else None


def _gpus_of(server: Mapping[str, Any]) -> int | None:
    """With attention data parallelism the ranks share the GPUs of tensor parallelism."""
    tensor = values.level(server.get("tp_size"))
    data = 1 if server.get("enable_dp_attention") is True else values.level(server.get("dp_size")) or 1
    return tensor and tensor * data * (values.level(server.get("pp_size")) or 1)


def _parallel(servers: list[Mapping[str, Any]]) -> dict[str, Any]:
    if len(servers) != 1:
        return {}
    sizes = {"tensor_parallel": "tp_size", "data_parallel": "dp_size", "pipeline_parallel": "pp_size"}
    return {name: values.level(servers[0].get(key)) for name, key in sizes.items()}
