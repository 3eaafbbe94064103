"""evalscope `perf`: `benchmark_summary.json`, whose keys are what it prints, each with its unit. Names changed: both are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capacity.bench.formats import values
from capacity.bench.formats.contract import Opened, Unreadable
from capacity.domain.measurement.types import Contents, Setting, Stage

NAME: Final = "evalscope"

_CONCURRENCY: Final = ("concurrency", "number of concurrency")
_SUCCESSES: Final = ("success requests", "succeed requests")
_FAILURES: Final = ("failed requests",)
_RATE: Final = ("req throughput", "request throughput")
_OUTPUT: Final = ("output throughput", "output token throughput")
_SECONDS: Final = ("test duration", "time taken for tests")
_TTFT: Final = ("avg ttft", "ttft", "average time to first token")
_TPOT: Final = ("avg tpot", "tpot", "average time per output token")
_E2E: Final = ("avg latency", "average latency")
_ASKED_RATE: Final = ("request rate",)
_INPUT_LENGTH: Final = ("avg input tokens", "average input tokens per request")
_OUTPUT_LENGTH: Final = ("avg output tokens", "average output tokens per request")

Named = Mapping[str, tuple[str, Any]]
"""The key without its unit in small letters → unit, value."""


def recognises(opened: Opened) -> bool:
    return values.any_is(opened, _is_mine)


def read(opened: Opened) -> Contents:
    if all(_is_percentiles(document) for document in opened.documents):
        raise Unreadable(
            f"it holds percentiles of {NAME} without the concurrency they were measured at. "
            "Import its benchmark_summary.json for the throughput, or measure with another tool."
        )
    return values.each(opened, NAME, _is_summary, _row)


def _is_mine(document: Any) -> bool:
    return _is_percentiles(document) or _is_summary(document)


def _is_percentiles(document: Any) -> bool:
    return isinstance(document, Mapping) and "Percentiles" in document and any("TTFT" in str(key) for key in document)


def _is_summary(document: Any) -> bool:
    named = _named(document) if isinstance(document, Mapping) else {}
    return all(_value(named, keys) is not None for keys in (_CONCURRENCY, _SUCCESSES, _E2E))


def _named(document: Mapping[Any, Any]) -> Named:
    keys = ((values.named(key), value) for key, value in document.items())
    return {name: (unit, value) for (name, unit), value in keys}


def _value(named: Named, keys: tuple[str, ...]) -> Any:
    return next((named[key][1] for key in keys if key in named), None)


def _mean(named: Named, keys: tuple[str, ...]) -> dict[str, float]:
    """Its mean in ms, by the unit in the key."""
    unit, value = next((named[key] for key in keys if key in named), ("", None))
    return values.statistics({"mean": value}, values.ms_per(unit))


def _row(where: str, summary: Mapping[Any, Any]) -> values.Row:
    named = _named(summary)
    requests, errors = values.count(_value(named, _SUCCESSES)), values.count(_value(named, _FAILURES))
    if nothing := values.unfinished(where, requests, errors):
        return nothing
    rate, latency = values.positive(_value(named, _RATE)), _mean(named, _E2E)
    stage = Stage(
        where=where,
        asked=None if values.positive(_value(named, _ASKED_RATE)) else values.level(_value(named, _CONCURRENCY)),
        mean_in_flight=values.positive(values.product(rate, latency.get("mean"), 1e-3)),
        requests=requests,
        errors=errors,
        seconds=values.positive(_value(named, _SECONDS)),
        tokens_per_second=values.positive(_value(named, _OUTPUT)),
        ttft_ms=_mean(named, _TTFT),
        tpot_ms=_mean(named, _TPOT),
        e2e_ms=latency,
        flags=values.flags(errors),
    )
    return _setting(named), stage


def _setting(named: Named) -> Setting:
    return Setting(
        tool=NAME,
        input_tokens=values.rounded(_value(named, _INPUT_LENGTH)),
        output_tokens=values.rounded(_value(named, _OUTPUT_LENGTH)),
        drawn=True,
    )
