"""The CSV that AIPerf and GenAI-Perf write beside their JSON: a table of statistics, an empty line, then `Metric,Value`.

It names neither the model nor what was asked for. Units stand in the metric's name: `Request Latency (ms)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from capacity.bench.formats import values
from capacity.bench.formats.contract import Opened
from capacity.domain.measurement.types import Contents, Setting, Stage

Table = Mapping[str, tuple[str, dict[str, Any]]]
"""Metric in small letters → its unit, and its statistics (`value` in the second table)."""


def recognises(opened: Opened) -> bool:
    head = _head(opened.documents[0]) if opened.documents else []
    if head[:1] != ["metric"] or "avg" not in head:
        return False
    return any(_name(row)[0] == "request latency" for row in opened.documents[:200])


def read(opened: Opened) -> Contents:
    return values.contents([_row(opened.where, _table(opened.documents))])


def _head(row: Any) -> list[str]:
    return [str(cell).strip().lower() for cell in values.entries(row)]


def _name(row: Any) -> tuple[str, str]:
    """The metric and its unit, in small letters."""
    return values.named(values.at(row, 0))


def _table(rows: Sequence[Any]) -> Table:
    """The first of two metrics with one name counts; what follows the table of plain values (GPUs) is left out."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    columns: list[str] = []
    for row in rows:
        head = _head(row)
        if head[:1] == ["metric"]:
            columns = head[1:]
        elif head[:1] == ["endpoint"]:
            break
        elif head and head[0]:
            name, unit = _name(row)
            found.setdefault(name, (unit, dict(zip(columns, row[1:], strict=False))))
    return found


def _row(where: str, table: Table) -> values.Row:
    requests, errors = values.count(_value(table, "request count")), _errors(table)
    if nothing := values.unfinished(where, requests, errors):
        return nothing
    rate, seconds = values.positive(_value(table, "request throughput")), values.positive(_value(table, "benchmark duration"))
    latency = _ms(table, "request latency")
    measured = values.positive(_statistic(table, "effective concurrency", "avg"))
    stage = Stage(
        where=where,
        mean_in_flight=measured or values.positive(values.product(rate, latency.get("mean"), 1e-3)),
        requests=requests,
        errors=errors,
        seconds=seconds or values.ratio(requests, rate),
        tokens_per_second=values.positive(_value(table, "output token throughput")),
        ttft_ms=_ms(table, "time to first token"),
        tpot_ms=_ms(table, "inter token latency"),
        e2e_ms=latency,
        flags=values.flags(errors),
    )
    return _setting(table), stage


def _statistic(table: Table, metric: str, name: str) -> Any:
    return values.at(table.get(metric, ("", {}))[1], name)


def _value(table: Table, metric: str) -> Any:
    return _statistic(table, metric, "value") or _statistic(table, metric, "avg")


def _ms(table: Table, metric: str) -> dict[str, float]:
    unit, found = table.get(metric, ("", {}))
    return values.statistics(found, values.ms_per(unit))


def _errors(table: Table) -> int | None:
    """AIPerf leaves the count out where no request failed; GenAI-Perf never has one."""
    counted = values.count(_value(table, "error request count"))
    return 0 if counted is None and "benchmark duration" in table else counted


def _setting(table: Table) -> Setting:
    return Setting(
        tool="AIPerf" if "benchmark duration" in table else "GenAI-Perf",
        input_tokens=values.rounded(_statistic(table, "input sequence length", "avg")),
        output_tokens=values.rounded(_statistic(table, "output sequence length", "avg")),
        drawn=any(values.positive(_statistic(table, f"{side} sequence length", "std")) for side in ("input", "output")),
    )
