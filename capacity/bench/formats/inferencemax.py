"""InferenceMAX / InferenceX: aggregates (`agg_*.json`) and the files of its experimental client.

Both drop vLLM's `_ms` and are seconds. An aggregate gives throughput per GPU, so it is multiplied by the GPUs it was divided by:
the decode GPUs where prefill and decode are apart, else those of tensor and pipeline parallelism.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capacity.bench.formats import values
from capacity.bench.formats.contract import Opened
from capacity.domain.measurement.types import Contents, Setting, Skipped, Stage

NAME: Final = "InferenceMAX"

_AGREES: Final = (0.5, 2.0)
"""Output ÷ total tokens by the file's two rates, against its lengths: further apart than this, the GPUs are not those meant."""


def recognises(opened: Opened) -> bool:
    return values.any_is(opened, _is_result)


def read(opened: Opened) -> Contents:
    return values.each(opened, NAME, _is_result, _row)


def _is_result(document: Any) -> bool:
    return _is_aggregate(document) or _is_experiment(document)


def _row(where: str, found: Mapping[str, Any]) -> values.Row:
    return _aggregate(where, found) if _is_aggregate(found) else _experiment(where, found)


def _is_aggregate(document: Any) -> bool:
    return isinstance(document, Mapping) and all(key in document for key in ("hw", "conc", "tput_per_gpu"))


def _is_experiment(document: Any) -> bool:
    if not isinstance(document, Mapping) or "model_id" not in document or "output_throughput" not in document:
        return False
    return any(key in document for key in ("median_ttft", "mean_ttft", "p99_ttft", "good_completed"))


def _ms(found: Mapping[str, Any], name: str) -> dict[str, float]:
    return values.statistics(values.ending(found, name), 1e3)


def _aggregate(where: str, found: Mapping[str, Any]) -> values.Row:
    output, gpus = _divided_by(found), _gpus(found)
    if not _agree(found, output, gpus):
        return Skipped(
            where=where, why="its throughput per GPU and its lengths do not agree, so the number of GPUs is not known."
        )
    stage = Stage(
        where=where,
        asked=values.level(found.get("conc")),
        tokens_per_second=values.positive(values.product(values.positive(found.get("output_tput_per_gpu")), output)),
        ttft_ms=_ms(found, "ttft"),
        tpot_ms=_ms(found, "tpot"),
        e2e_ms=_ms(found, "e2el"),
        flags=values.flags(None),
    )
    return _aggregate_setting(found, gpus), stage


def _gpus(found: Mapping[str, Any]) -> int | None:
    """All GPUs of the deployment."""
    apart = [values.count(found.get(f"num_{role}_gpu")) for role in ("prefill", "decode")]
    if None not in apart and any(apart):
        return sum(gpus or 0 for gpus in apart)
    tensor = values.level(found.get("tp"))
    return tensor and tensor * (values.level(found.get("pp")) or 1) * (values.level(found.get("pcp_size")) or 1)


def _divided_by(found: Mapping[str, Any]) -> int | None:
    """The GPUs that output tokens were divided by."""
    return values.level(found.get("num_decode_gpu")) or _gpus(found)


def _agree(found: Mapping[str, Any], output_gpus: int | None, gpus: int | None) -> bool:
    """Whether output and total tokens stand to each other as the lengths do; true where the file says too little to tell."""
    output = values.product(values.positive(found.get("output_tput_per_gpu")), output_gpus)
    total = values.product(values.positive(found.get("tput_per_gpu")), _total_gpus(found, gpus))
    lengths = [values.positive(found.get(key)) for key in ("isl", "osl")]
    expected = values.ratio(lengths[1], sum(length or 0 for length in lengths)) if None not in lengths else None
    share = values.ratio(values.ratio(output, total), expected)
    return share is None or _AGREES[0] <= share <= _AGREES[1]


def _total_gpus(found: Mapping[str, Any], gpus: int | None) -> int | None:
    """Before `is_multinode` the total was divided by `tp`, also where prefill and decode were apart."""
    return gpus if "is_multinode" in found else values.level(found.get("tp")) or gpus


def _aggregate_setting(found: Mapping[str, Any], gpus: int | None) -> Setting:
    return Setting(
        tool=NAME,
        model=values.text(found.get("model")),
        engine=values.text(found.get("framework")),
        engine_version=values.text(found.get("image")),
        hardware=values.text(found.get("hw")),
        input_tokens=values.rounded(found.get("isl")),
        output_tokens=values.rounded(found.get("osl")),
        variant=_variant(found, gpus),
        hints=values.hints(
            gpus=gpus,
            tensor_parallel=values.level(found.get("tp")),
            pipeline_parallel=values.level(found.get("pp")),
            expert_parallel=values.level(found.get("ep")),
            prefill_gpus=values.level(found.get("num_prefill_gpu")),
            decode_gpus=values.level(found.get("num_decode_gpu")),
            attention="data parallel" if str(found.get("dp_attention")).lower() == "true" else None,
        ),
    )


def _variant(found: Mapping[str, Any], gpus: int | None) -> str | None:
    """What else keeps two results of this tool apart: precision, draft tokens, and how many GPUs in which roles."""
    drafts = values.text(found.get("spec_decoding")) or values.text(found.get("mtp"))
    parts = (
        values.text(found.get("precision")),
        f"speculative decoding {drafts}" if drafts and drafts.lower() not in ("none", "off", "false") else None,
        f"{gpus} GPUs" if gpus else None,
        "prefill and decode apart" if found.get("disagg") in (True, "true") else None,
    )
    return ", ".join(part for part in parts if part) or None


def _experiment(where: str, found: Mapping[str, Any]) -> values.Row:
    requests = values.count(found.get("completed"))
    errors = _failed(found, requests)
    if nothing := values.unfinished(where, requests, errors):
        return nothing
    rate, latencies = values.positive(found.get("request_throughput")), _ms(found, "e2el")
    stage = Stage(
        where=where,
        asked=values.level(found.get("max_concurrency")) if _unlimited(found.get("request_rate")) else None,
        mean_in_flight=values.positive(values.product(rate, latencies.get("mean"), 1e-3)),
        requests=requests,
        errors=errors,
        seconds=values.positive(found.get("duration")),
        tokens_per_second=values.positive(found.get("output_throughput")),
        ttft_ms=_ms(found, "ttft"),
        tpot_ms=_ms(found, "tpot"),
        e2e_ms=latencies,
        flags=values.flags(errors),
    )
    return _experiment_setting(found, requests), stage


def _failed(found: Mapping[str, Any], requests: int | None) -> int | None:
    """The client counts none: what was asked for and did not finish."""
    asked = values.count(found.get("num_prompts"))
    counted = values.count(found.get("failed"))
    return counted if counted is not None or asked is None or requests is None else max(0, asked - requests)


def _unlimited(rate: Any) -> bool:
    return (values.number(rate) or values.UNLIMITED) >= values.UNLIMITED


def _experiment_setting(found: Mapping[str, Any], requests: int | None) -> Setting:
    return Setting(
        tool=NAME,
        model=values.text(found.get("model_id")),
        input_tokens=values.mean_length(found.get("total_input_tokens"), requests),
        output_tokens=values.mean_length(found.get("total_output_tokens"), requests),
        drawn=any(values.is_drawn(found.get(f"total_{side}_tokens"), requests) for side in ("input", "output")),
        hints=values.hints(date=values.text(found.get("date"))),
    )
