"""GuideLLM's JSON. Where a figure stands changed from generation to generation; each is looked for in all its places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from capacity.bench.formats import values
from capacity.bench.formats.guidellm import settings
from capacity.bench.formats.guidellm.stages import Run
from capacity.bench.formats.guidellm.stages import rows as stage_rows
from capacity.domain.measurement.types import Setting

_MODEL = (
    ("args", "model"),
    ("config", "spec", "backend", "model"),
    ("config", "model"),
    ("benchmarks", 0, "config", "backend", "model"),
    ("benchmarks", 0, "worker", "backend_model"),
)
_DATA = (("config", "spec", "data"), ("args", "data"), ("benchmarks", 0, "request_loader", "data"))


def recognises(document: Any) -> bool:
    if values.at(document, "metadata", "guidellm_version"):
        return True
    first = values.at(document, "benchmarks", 0, "metrics")
    return values.at(first, "request_latency", "successful") is not None and values.at(first, "request_concurrency") is not None


def rows(where: str, document: Any) -> Iterable[values.Row]:
    if not recognises(document):
        return ()
    unresolved = _unresolved(document)
    found = [item for item in values.entries(values.at(document, "benchmarks")) if isinstance(item, Mapping)]
    runs = [_run(f"{where}, benchmark {place}", item, unresolved) for place, item in enumerate(found, 1)]
    return stage_rows(runs, _setting(document))


def _run(where: str, benchmark: Mapping[str, Any], unresolved: frozenset[int]) -> Run:
    strategy = _strategy(benchmark)
    metrics = benchmark.get("metrics")
    counts = _mapping(values.at(metrics, "request_totals") or benchmark.get("request_totals"))
    return Run(
        where=where,
        strategy=strategy,
        seconds=benchmark.get("duration"),
        counts=counts,
        in_flight=_mean(metrics, "request_concurrency"),
        tokens_per_second=_mean(metrics, "output_tokens_per_second"),
        ttft=_distribution(metrics, "time_to_first_token_ms"),
        between_tokens=_distribution(metrics, "inter_token_latency_ms"),
        e2e=_distribution(metrics, "request_latency"),
        input_tokens=_mean(metrics, "prompt_token_count"),
        output_tokens=_mean(metrics, "output_token_count"),
        unresolved=values.level(strategy.get("streams")) in unresolved,
    )


def _strategy(benchmark: Mapping[str, Any]) -> Mapping[str, Any]:
    """From 0.4 on in `config`, before in `args`."""
    return _mapping(values.at(benchmark, "config", "strategy") or values.at(benchmark, "args", "strategy"))


def _mean(metrics: Any, name: str) -> Any:
    return values.at(metrics, name, "successful", "mean")


def _distribution(metrics: Any, name: str) -> dict[str, Any]:
    """Mean, median and percentiles of the successes; the group `total` mixes in requests that were cut off."""
    found = _mapping(values.at(metrics, name, "successful"))
    return {**_mapping(found.get("percentiles")), "mean": found.get("mean"), "median": found.get("median")}


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _setting(document: Any) -> Setting:
    return settings.setting(
        version=values.at(document, "metadata", "guidellm_version") or _generation(document),
        model=[values.at(document, *path) for path in _MODEL],
        data=next((data for path in _DATA if (data := values.at(document, *path))), None),
        hints=_hints(document),
    )


def _generation(document: Any) -> str:
    """Files that do not name their version: what they reported for one server fell with 0.4, so they are kept apart."""
    return "0.4" if values.at(document, "benchmarks", 0, "config") else "0.3 or older"


def _hints(document: Any) -> dict[str, str]:
    began = values.positive(values.at(document, "benchmarks", 0, "start_time"))
    return {
        **settings.labels(values.at(document, "config", "metadata", "labels") or values.at(document, "metadata", "labels")),
        **values.hints(began=values.utc(began)),
        **_conclusion(document),
    }


def _conclusion(document: Any) -> dict[str, str]:
    """What GuideLLM itself found for its own SLO (0.8, profiles `goodput` and `knee`)."""
    found = values.at(document, "conclusions", 0)
    own = _mapping(values.at(document, "config", "spec", "metrics", "slo"))
    bounds = ", ".join(f"{name} {limit:g}" for name, value in own.items() if (limit := values.positive(value)) is not None)
    return values.hints(
        best_passing_streams=values.count(values.at(found, "best_passing_streams")),
        lowest_failing_streams=values.count(values.at(found, "lowest_failing_streams")),
        its_own_slo=bounds if found else None,
        share_to_attain=values.positive(values.at(document, "config", "spec", "profile", "target_attainment")),
        stop_reason=values.text(values.at(found, "stop_reason")),
    )


def _unresolved(document: Any) -> frozenset[int]:
    """Levels of its own search that it could not decide (too few requests) or broke off."""
    probes = values.entries(values.at(document, "conclusions", 0, "probes"))
    weak = (probe for probe in probes if values.at(probe, "resolved") is False or values.at(probe, "aborted") is True)
    return frozenset(streams for probe in weak if (streams := values.level(values.at(probe, "streams"))) is not None)
