"""What the engine behind an endpoint says of itself, for the evidence: asked leniently, unknown where it does not say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from capacity.bench.events import printable
from capacity.sources.address import Network
from capacity.sources.engines import Skipped, fetch
from capacity.sources.exposition import Series, parse
from capacity.sources.names import WANTED
from capacity.sources.reading import EngineReading, read_series

SECONDS: Final = 3.0
MOST_OFFERED: Final = 5
MOST_BYTES: Final = 512 * 1024
SIMULATOR: Final = "llmgw-simulator"
TOLD: Final = (
    "version", "build_info", "total_slots", "tp_size", "dp_size", "pp_size", "dtype", "quantization", "kv_cache_dtype",
    "context_length", "max_running_requests", "mem_fraction_static", "speculative_algorithm", "disable_radix_cache",
    "attention_backend", "max_model_len", "owned_by", "model_dtype_str",
)  # fmt: skip
"""What is kept of those pages, and nothing else: SGLang shows its API keys among its settings, llama.cpp its folders."""
PAGES: Final[Mapping[str, str]] = {"/get_server_info": "sglang", "/props": "llama.cpp", "/version": "vllm", "/v1/models": ""}
HITS: Final = ("vllm_prefix_cache_hits_total", "vllm_gpu_prefix_cache_hits_total")
QUERIES: Final = ("vllm_prefix_cache_queries_total", "vllm_gpu_prefix_cache_queries_total")
RATES: Final = ("sglang_cache_hit_rate",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`engine` as capacity.sources names it; `told`: what it says besides, plain JSON."""

    engine: str | None = None
    version: str | None = None
    told: Mapping[str, Any] = field(default_factory=dict)

    @property
    def simulated(self) -> bool:
        return self.told.get("owned_by") == SIMULATOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """An engine's metrics at one moment. `hits`, `queries`: tokens looked for in its prefix cache; `hit_rate`: its own mean."""

    reading: EngineReading
    hits: float | None = None
    queries: float | None = None
    hit_rate: float | None = None


async def facts(http: aiohttp.ClientSession, base: str, allowed: Sequence[Network]) -> Facts:
    """Everything is asked at once, within three seconds."""
    pages = [*await asyncio.gather(*(_page(http, f"{base}{path}") for path in PAGES))]
    counted = await counters(base, allowed)
    told: dict[str, Any] = {}
    for page in reversed(pages):
        told |= _kept(page)
    named = next((engine for engine, page in zip(PAGES.values(), pages, strict=True) if engine and page), None)
    version = told.pop("version", None) or told.get("build_info")
    engine = SIMULATOR if told.get("owned_by") == SIMULATOR else (counted.reading.engine if counted else None) or named
    return Facts(engine=engine, version=None if version is None else str(version), told=told)


async def offered(http: aiohttp.ClientSession, base: str) -> tuple[str, ...]:
    """The names of the models that it lists, a few at most; none where it lists none."""
    rows = (await _page(http, f"{base}/v1/models")).get("data")
    ids = [row.get("id") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return tuple(printable(name) for name in ids if isinstance(name, str) and name)[:MOST_OFFERED]


async def counters(base: str, allowed: Sequence[Network]) -> Counters | None:
    """None where there are no metrics of a known engine."""
    text = await fetch(base, allowed_networks=allowed)
    if isinstance(text, Skipped):
        return None
    series = parse(text, WANTED | {*HITS, *QUERIES, *RATES})
    reading = read_series(series)
    if reading.engine is None:
        return None
    return Counters(reading=reading, hits=_sum(series, HITS), queries=_sum(series, QUERIES), hit_rate=_first(series, RATES))


def between(before: Counters | None, after: Counters | None, seconds: float) -> dict[str, float]:
    """What the engine itself counted over a window, as plain JSON: with tokens of others, where it served others too."""
    if before is None or after is None:
        return {}
    output = _grown(before.reading.output_tokens_total, after.reading.output_tokens_total)
    prompt = _grown(before.reading.prompt_tokens_total, after.reading.prompt_tokens_total)
    queries, hits = _grown(before.queries, after.queries), _grown(before.hits, after.hits)
    found = {
        "engine_output_tokens_per_second": None if output is None else output / seconds,
        "engine_prompt_tokens_per_second": None if prompt is None else prompt / seconds,
        "prefix_cache_hit_rate": hits / queries if queries and hits is not None else after.hit_rate,
    }
    return {name: round(value, 4) for name, value in found.items() if value is not None}


async def _page(http: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    try:
        async with asyncio.timeout(SECONDS), http.get(url, allow_redirects=False) as response:
            body = bytearray()
            async for data in response.content.iter_any():
                body += data
                if len(body) > MOST_BYTES:
                    return {}
            document = json.loads(bytes(body)) if response.status == 200 else None
    except (aiohttp.ClientError, OSError, ValueError, RecursionError):  # TimeoutError is an OSError
        return {}
    return document if isinstance(document, dict) else {}


def _kept(page: Mapping[str, Any]) -> dict[str, Any]:
    rows = page.get("data")
    page = {**page, **rows[0]} if isinstance(rows, list) and rows and isinstance(rows[0], dict) else page
    return {name: _plain(page[name]) for name in TOLD if isinstance(page.get(name), str | int | float)}


def _plain(value: str | float) -> str | float:
    return printable(value) if isinstance(value, str) else value


def _sum(series: Series, names: Sequence[str]) -> float | None:
    rows = next((series[name] for name in names if name in series), None)
    return None if rows is None else sum(rows.values())


def _first(series: Series, names: Sequence[str]) -> float | None:
    return next((value for name in names for value in series.get(name, {}).values()), None)


def _grown(before: float | None, after: float | None) -> float | None:
    """None where it is unknown, or began anew."""
    return None if before is None or after is None or after < before else after - before
