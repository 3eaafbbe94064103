"""What llmgw reads in an engine's metrics, for an operator who is about to register it: as lines, or as a document."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..fleet_scrape import allowed_networks
from ..sources.engines import Limits, Skipped, fetch
from ..sources.exposition import parse
from ..sources.names import WANTED
from ..sources.reading import EngineReading, read_models, read_series, why_no_engine

UNKNOWN = "unknown"
NO_LOAD = "Its requests in flight are unknown: as a replica its load would be unknown too."


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`fault`: why the load of such an engine would not be known, in a sentence; None where it would be."""

    reading: EngineReading
    models: dict[str, int | None]
    fault: str | None


def report(source: str) -> Report:
    """Of a URL (http or https), a file, or `-`, the standard input."""
    text = asyncio.run(fetch(source, allowed_networks=allowed_networks())) if is_url(source) else file_text(source)
    if isinstance(text, Skipped):
        return Report(reading=EngineReading(engine=None), models={}, fault=text.reason)
    series = parse(text, WANTED)
    reading = read_series(series)
    fault = why_no_engine(text) if reading.engine is None else None if reading.in_flight is not None else NO_LOAD
    return Report(reading=reading, models=read_models(series), fault=fault)


def is_url(source: str) -> bool:
    return source.lower().startswith(("http://", "https://"))


def file_text(source: str) -> str | Skipped:
    """At most as much as an engine may answer."""
    most = Limits().answer_bytes
    try:
        if source == "-":
            body = sys.stdin.buffer.read(most + 1)
        else:
            with Path(source).open("rb") as file:
                body = file.read(most + 1)
    except (OSError, ValueError) as error:
        return Skipped(f"{source} cannot be read ({getattr(error, 'strerror', None) or 'not a path'}).")
    return Skipped(f"It has more than {most} bytes.") if len(body) > most else body.decode("utf-8", "replace")


def document(found: Report) -> dict[str, Any]:
    """The same for programs; null is unknown."""
    numbers = asdict(found.reading)
    latencies = {name: {"count": one.count, "buckets": len(one.bounds)} for name, one in found.reading.latencies.items()}
    return {**numbers, "latencies": latencies, "models": found.models, "error": found.fault}


def lines(found: Report) -> Iterator[str]:
    """A line a thing that llmgw uses."""
    reading = found.reading
    yield f"engine         {reading.engine}"
    yield f"in flight      {said(reading.in_flight)} = {said(reading.running)} running + {said(reading.waiting)} waiting"
    yield f"output tokens  {said(reading.output_tokens_total)} (since its start)"
    yield f"prompt tokens  {said(reading.prompt_tokens_total)} (since its start)"
    yield f"prefix cache   {said(reading.prefix_hits_total)} of {said(reading.prefix_queries_total)} tokens (since its start)"
    yield f"KV cache       {share(reading.kv_usage_mean)} (of its fullest rank {share(reading.kv_usage_max)})"
    for name in ("ttft", "tpot", "e2e"):
        one = reading.latencies.get(name)  # type: ignore[call-overload]
        yield f"{name:<14} {f'{one.count:,} counted in {len(one.bounds)} buckets' if one else 'not counted'}"
    for model, in_flight in found.models.items():
        yield f"model          {printable(model)}: {said(in_flight)} in flight"


def printable(text: str) -> str:
    """Without what a terminal would obey: an engine's labels are its own words."""
    return "".join(character if character.isprintable() else "�" for character in text)


def said(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def share(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:.1%}"
