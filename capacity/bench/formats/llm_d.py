"""llm-d's benchmark report, versions 0.1, 0.2 and 0.2.1, JSON or YAML: every statistic has its unit, and the hardware is in it.

Units are followed, then doubted: the project's own example of 0.1 calls seconds milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from capacity.bench.formats import llm_d_stack, values
from capacity.bench.formats.contract import Opened
from capacity.domain.measurement.types import Contents, Setting, Skipped, Stage

NAME: Final = "llm-d-benchmark"

_TPOT_MS: Final = (0.5, 2500.0)
"""The time per output token of any engine lies in here, in ms; outside, its unit is not what the report says."""
_LEAST_MS: Final = 1.0
"""No request is answered faster."""
_DURATION: Final = re.compile(r"P(?:([\d.]+)D)?(?:T(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?)?")

Ms = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A report of either version by the same names: parts of the document as they are."""

    requests: Any
    latency: Any
    output_rate: Any
    request_rate: Any
    duration: Any


def recognises(opened: Opened) -> bool:
    return values.any_is(opened, _is_report)


def read(opened: Opened) -> Contents:
    return values.each(opened, NAME, _is_report, _row)


def _is_report(document: Any) -> bool:
    if not isinstance(document, Mapping) or not isinstance(document.get("scenario"), Mapping):
        return False
    return "version" in document and ("metrics" in document or "results" in document)


def _run(report: Mapping[str, Any]) -> _Run:
    old, new = report.get("metrics"), values.at(report, "results", "request_performance", "aggregate")
    if isinstance(new, Mapping):
        return _Run(
            requests=new.get("requests"),
            latency=new.get("latency"),
            output_rate=values.at(new, "throughput", "output_token_rate", "mean"),
            request_rate=values.at(new, "throughput", "request_rate", "mean"),
            duration=values.at(report, "run", "time", "duration"),
        )
    return _Run(
        requests=values.at(old, "requests"),
        latency=values.at(old, "latency"),
        output_rate=values.at(old, "throughput", "output_tokens_per_sec"),
        request_rate=values.at(old, "throughput", "requests_per_sec"),
        duration=values.at(old, "time", "duration"),
    )


def _row(where: str, report: Mapping[str, Any]) -> values.Row:
    run = _run(report)
    errors, incomplete = (values.count(values.at(run.requests, name)) for name in ("failures", "incomplete"))
    requests = _finished(run, errors, incomplete)
    if nothing := values.unfinished(where, requests, errors):
        return nothing
    ttft, tpot, e2e = (_ms(run, name) for name in ("time_to_first_token", "time_per_output_token", "request_latency"))
    if doubt := _doubt(ttft, tpot, e2e):
        return Skipped(where=where, why=doubt)
    stage = Stage(
        where=where,
        asked=_asked(report),
        mean_in_flight=values.positive(values.product(values.positive(run.request_rate), e2e.get("mean"), 1e-3)),
        requests=requests,
        errors=errors,
        incomplete=incomplete,
        seconds=_seconds(run.duration),
        tokens_per_second=values.positive(run.output_rate),
        ttft_ms=ttft,
        tpot_ms=tpot,
        e2e_ms=e2e,
        flags=values.flags(errors),
    )
    return _setting(report, run), stage


def _finished(run: _Run, errors: int | None, incomplete: int | None) -> int | None:
    total = values.count(values.at(run.requests, "total"))
    return None if total is None else max(0, total - (errors or 0) - (incomplete or 0))


def _ms(run: _Run, name: str) -> Ms:
    """`p99p9` is the 99.9th percentile."""
    return values.statistics(values.at(run.latency, name), values.ms_per(values.at(run.latency, name, "units")))


def _doubt(ttft: Ms, tpot: Ms, e2e: Ms) -> str | None:
    """What cannot be true of an engine, so that the unit must be another."""
    for name, found in (("time_per_output_token", tpot), ("time_to_first_token", ttft), ("request_latency", e2e)):
        value = found.get("mean", found.get("p50"))
        least, most = _TPOT_MS if found is tpot else (_LEAST_MS, None)
        if value is not None and (value < least or (most is not None and value > most)):
            return f"its {name} of {value:.3g} ms cannot be: `units` seems to name the wrong unit. Correct it in the report."
    return None


def _asked(report: Mapping[str, Any]) -> int | None:
    """The concurrency of a closed loop; a run by rate has none."""
    load = values.at(report, "scenario", "load", "standardized") or values.at(report, "scenario", "load", "args")
    by_rate = any(values.positive(values.at(load, key)) for key in ("rate_qps", "qps_values", "request_rate"))
    names = ("concurrency", "max_concurrency", "max-concurrency")
    return None if by_rate else next((found for name in names if (found := values.level(values.at(load, name)))), None)


def _seconds(duration: Any) -> float | None:
    """Seconds, or ISO 8601 (`PT49.97S`)."""
    match = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    if match is None:
        return values.positive(duration)
    parts = zip((86400, 3600, 60, 1), match.groups(), strict=True)
    return values.positive(sum(factor * (values.amount(part) or 0) for factor, part in parts))


def _setting(report: Mapping[str, Any], run: _Run) -> Setting:
    stack = llm_d_stack.of(report["scenario"])
    load = report["scenario"].get("load")
    return Setting(
        tool=NAME,
        tool_version=values.text(str(report["version"])),
        model=stack.model,
        engine=stack.engine,
        engine_version=stack.engine_version,
        hardware=stack.hardware,
        input_tokens=_length(load, run, "input"),
        output_tokens=_length(load, run, "output"),
        drawn=any(values.at(load, "standardized", f"{side}_seq_len", "value") is None for side in ("input", "output")),
        variant=stack.variant,
        hints=stack.hints | values.hints(harness=_harness(load)),
    )


def _length(load: Any, run: _Run, side: str) -> int | None:
    asked = values.rounded(values.at(load, "standardized", f"{side}_seq_len", "value"))
    return asked or values.rounded(values.at(run.requests, f"{side}_length", "mean"))


def _harness(load: Any) -> str | None:
    return values.text(values.at(load, "standardized", "tool")) or values.text(values.at(load, "name"))
