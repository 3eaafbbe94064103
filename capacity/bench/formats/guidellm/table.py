"""GuideLLM's CSV from 0.5 on: three heading rows (group, metric, statistic), then a row for each benchmark.

Some versions head the table by the first benchmark alone and write the others shifted: such a row has another number of cells,
or no list where percentiles belong, and is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from capacity.bench.formats import values
from capacity.bench.formats.guidellm import settings
from capacity.bench.formats.guidellm.stages import LISTED, Run
from capacity.bench.formats.guidellm.stages import rows as stage_rows
from capacity.domain.measurement.types import Setting, Skipped

_HEADINGS = 3
_E2E = ("Request Latency", "Successful Sec")
_CONCURRENCY = ("Server Throughput", "Successful Concurrency")

Cells = Mapping[tuple[str, ...], str]


def recognises(documents: Sequence[Any]) -> bool:
    return len(documents) >= _HEADINGS and documents[0][:1] == ["Run Info"] and documents[1][:1] == ["Run ID"]


def rows(where: str, documents: Sequence[Sequence[str]]) -> Iterable[values.Row]:
    headings = list(zip(*documents[:_HEADINGS], strict=False))
    numbered = [(f"{where}, row {place}", row) for place, row in enumerate(documents[_HEADINGS:], _HEADINGS + 1) if any(row)]
    fitting = [(place, dict(zip(headings, row, strict=False))) for place, row in numbered if len(row) == len(headings)]
    whole = [(place, cells) for place, cells in fitting if _listed(cells, *_E2E)]
    yield from stage_rows([_run(place, cells) for place, cells in whole], _setting(whole[0][1]) if whole else Setting(tool=""))
    kept = {place for place, _ in whole}
    yield from (_shifted(place, len(row), len(headings)) for place, row in numbered if place not in kept)


def _shifted(where: str, cells: int, headings: int) -> Skipped:
    found = "its cells stand under the wrong headings" if cells == headings else f"it has {cells} cells under {headings} headings"
    return Skipped(where=where, why=f"{found}, so its figures cannot be told apart; import the JSON of the same run.")


def _run(where: str, cells: Cells) -> Run:
    return Run(
        where=where,
        strategy=_strategy(cells),
        seconds=cells.get(("Timings", "Duration", "Sec")),
        counts={name: cells.get(("Request Counts", name.title(), "")) for name in ("successful", "errored", "incomplete")},
        in_flight=cells.get((*_CONCURRENCY, "Mean")),
        tokens_per_second=cells.get(("Token Throughput", "Successful Output Tokens/Sec", "Mean")),
        ttft=_distribution(cells, "Time to First Token", "Successful ms"),
        between_tokens=_distribution(cells, "Inter Token Latency", "Successful ms"),
        e2e=_distribution(cells, *_E2E),
        input_tokens=cells.get(("Token Metrics", "Successful Input Tokens", "Mean")),
        output_tokens=cells.get(("Token Metrics", "Successful Output Tokens", "Mean")),
    )


def _strategy(cells: Cells) -> dict[str, Any]:
    """`concurrent@4` says its size; a bare `concurrent` has it in the profile, at its place in the run."""
    kind, _, size = cells.get(("Benchmark", "Strategy", ""), "").partition("@")
    place = values.count(cells.get(("Run Info", "Run Index", "")))
    done = values.at(settings.parsed(cells.get(("Run Info", "Profile", ""))), "completed_strategies", place)
    found = size or values.at(done, "streams" if kind == "concurrent" else "rate")
    return {"type_": kind, "streams" if kind == "concurrent" else "rate": values.number(found)}


def _distribution(cells: Cells, group: str, metric: str) -> dict[str, Any]:
    named = {"mean": cells.get((group, metric, "Mean")), "median": cells.get((group, metric, "Median"))}
    return {**dict(zip(LISTED, _listed(cells, group, metric), strict=False)), **named}


def _listed(cells: Cells, group: str, metric: str) -> list[Any]:
    """The eleven numbers of a cell of percentiles; [] where it holds something else."""
    try:
        found = json.loads(cells.get((group, metric, "Percentiles"), ""))
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) and len(found) == len(LISTED) else []


def _setting(cells: Cells) -> Setting:
    arguments = settings.parsed(cells.get(("Runtime Info", "Arguments", "")))
    return settings.setting(
        version=settings.parsed(cells.get(("Runtime Info", "Metadata", ""))).get("guidellm_version"),
        model=[
            values.at(arguments, "model"),
            values.at(arguments, "spec", "backend", "model"),
            settings.parsed(cells.get(("Run Info", "Backend", ""))).get("model"),
        ],
        data=values.at(arguments, "spec", "data") or values.at(arguments, "data"),
        hints=settings.labels(values.at(arguments, "metadata", "labels")),
    )
