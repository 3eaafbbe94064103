"""GuideLLM's CSV up to 0.3: one heading row, percentiles as a list in one cell whose order the heading says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from capacity.bench.formats import values
from capacity.bench.formats.guidellm import settings
from capacity.bench.formats.guidellm.stages import Run
from capacity.bench.formats.guidellm.stages import rows as stage_rows
from capacity.domain.measurement.types import Setting, Skipped

_LISTED = re.compile(r"Successful (?P<metric>.+) \[(?P<order>[^\]]*)\]")
_MARK = "Successful Request concurrency mean"


def recognises(documents: Sequence[Any]) -> bool:
    return bool(documents) and _MARK in documents[0]


def rows(where: str, documents: Sequence[Sequence[str]]) -> Iterable[values.Row]:
    headings = documents[0]
    numbered = [(f"{where}, row {place}", row) for place, row in enumerate(documents[1:], 2) if any(row)]
    whole = [(place, dict(zip(headings, row, strict=True))) for place, row in numbered if len(row) == len(headings)]
    yield from stage_rows([_run(place, cells) for place, cells in whole], _setting(whole[0][1]) if whole else Setting(tool=""))
    for place, row in numbered:
        if len(row) != len(headings):
            yield Skipped(
                where=place, why=f"it has {len(row)} cells under {len(headings)} headings: the file was cut off or edited."
            )


def _run(where: str, cells: Mapping[str, str]) -> Run:
    lists = _lists(cells)
    return Run(
        where=where,
        strategy=_strategy(cells),
        seconds=cells.get("Duration"),
        counts={name: cells.get(f"{name.title()} Requests") for name in ("successful", "errored", "incomplete")},
        in_flight=cells.get(_MARK),
        tokens_per_second=cells.get("Successful Output tokens per second mean"),
        ttft=_distribution(cells, lists, "Time to first token ms"),
        between_tokens=_distribution(cells, lists, "Inter token latency ms"),
        e2e=_distribution(cells, lists, "Request latency"),
        input_tokens=cells.get("Successful Prompt token count mean"),
        output_tokens=cells.get("Successful Output token count mean"),
    )


def _strategy(cells: Mapping[str, str]) -> Mapping[str, Any]:
    """As `Args` holds it; the name `poisson@4.00` says the same shorter."""
    kind, _, size = cells.get("Name", "").partition("@")
    named = {"type_": kind, "streams" if kind == "concurrent" else "rate": values.number(size)}
    found = settings.parsed(cells.get("Args")).get("strategy")
    return found if isinstance(found, Mapping) else named


def _lists(cells: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """metric → (order, numbers), both as the file has them."""
    found = ((_LISTED.fullmatch(heading), cell) for heading, cell in cells.items())
    return {match["metric"]: (match["order"], cell) for match, cell in found if match}


def _distribution(cells: Mapping[str, str], lists: Mapping[str, tuple[str, str]], metric: str) -> dict[str, Any]:
    order, cell = lists.get(metric, ("", ""))
    try:
        numbers = json.loads(cell)
    except (ValueError, RecursionError):
        numbers = []
    names = ["p" + name.strip().replace("0.1", "001") for name in order.split(",")]
    listed = dict(zip(names, numbers, strict=True)) if isinstance(numbers, list) and len(numbers) == len(names) else {}
    return {**listed, "mean": cells.get(f"Successful {metric} mean"), "median": cells.get(f"Successful {metric} median")}


def _setting(cells: Mapping[str, str]) -> Setting:
    return settings.setting(
        version="0.3 or older",
        model=[settings.parsed(cells.get("Worker")).get("backend_model")],
        data=settings.parsed(cells.get("Request Loader")).get("data"),
        hints={},
    )
