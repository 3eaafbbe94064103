"""genai-bench (SGLang project): one file per scenario and concurrency, times in seconds, throughput of all streams apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from capacity.bench.formats import values
from capacity.bench.formats.contract import Opened
from capacity.domain.measurement.level import NEAR
from capacity.domain.measurement.types import Contents, Setting, Skipped, Stage

NAME: Final = "genai-bench"

_LENGTHS: Final = re.compile(r"\s*([NDU])\(([\d.]+),([\d.]+)\)(?:/\(([\d.]+),([\d.]+)\))?")


def recognises(opened: Opened) -> bool:
    return values.any_is(opened, _is_mine)


def read(opened: Opened) -> Contents:
    return values.each(opened, NAME, _is_mine, _row)


def _is_mine(document: Any) -> bool:
    return isinstance(values.at(document, "aggregated_metrics"), Mapping) or _is_experiment(document)


def _is_experiment(document: Any) -> bool:
    return isinstance(document, Mapping) and "traffic_scenario" in document and "server_engine" in document


def _row(where: str, document: Mapping[str, Any]) -> values.Row:
    found = document.get("aggregated_metrics")
    if not isinstance(found, Mapping):
        why = f"it describes an experiment of {NAME} and holds no results. Import the files of its runs."
        return Skipped(where=where, why=why)
    requests, errors = values.count(found.get("num_completed_requests")), values.count(found.get("num_error_requests"))
    if nothing := values.unfinished(where, requests, errors):
        return nothing
    rate = values.ratio(values.positive(found.get("requests_per_minute")), 60)
    latencies = {name: values.statistics(values.at(found, "stats", name), 1e3) for name in ("ttft", "tpot", "e2e_latency")}
    asked = values.level(found.get("num_concurrency"))
    stage = Stage(
        where=where,
        asked=asked,
        mean_in_flight=_in_flight(asked, values.product(rate, latencies["e2e_latency"].get("mean"), 1e-3)),
        requests=requests,
        errors=errors,
        seconds=values.positive(found.get("run_duration")) or values.ratio(requests, rate),
        tokens_per_second=values.positive(found.get("mean_output_throughput_tokens_per_s")),
        ttft_ms=latencies["ttft"],
        tpot_ms=latencies["tpot"],
        e2e_ms=latencies["e2e_latency"],
        flags=values.flags(errors),
    )
    return _setting(found), stage


def _in_flight(asked: int | None, by_littles_law: float | None) -> float | None:
    """The rate holds the ramp and the tail of a run too: where the law confirms the setting, the setting stands."""
    confirms = asked is not None and by_littles_law is not None and abs(by_littles_law - asked) <= NEAR * asked
    return None if confirms else values.positive(by_littles_law)


def _setting(found: Mapping[str, Any]) -> Setting:
    scenario = values.text(found.get("scenario"))
    asked = _asked_lengths(scenario or "")
    measured = tuple(values.rounded(values.at(found, "stats", f"num_{side}_tokens", "mean")) for side in ("input", "output"))
    length = asked or measured
    return Setting(tool=NAME, input_tokens=length[0], output_tokens=length[1], drawn=asked is None, variant=scenario)


def _asked_lengths(scenario: str) -> tuple[int | None, int | None] | None:
    """`D(100,1000)` are the lengths, `N(480,240)/(300,150)` means and deviations, `U(50,100)/(200,250)` bounds."""
    match = _LENGTHS.fullmatch(scenario)
    if match is None:
        return None
    kind, *written = match.groups()
    first, second, third, fourth = (values.number(word) for word in written)
    if kind == "D":
        return values.rounded(first), values.rounded(second)
    if kind == "N":
        return values.rounded(first), values.rounded(third)
    return _middle(first, second), _middle(third, fourth)


def _middle(low: float | None, high: float | None) -> int | None:
    return None if low is None or high is None else values.rounded((low + high) / 2)
