"""What a sweep of llmgw's own knows of each level beyond its stage, as rows for its page; whatever JSON lies there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

FACTS: Final = (
    ("api", "API"),
    ("tokens_from", "tokens are counted by"),
    ("output_pinned", "length of answers pinned"),
    ("same_prompt", "every request the same prompt"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelDetail:
    """Of one level; None: not said. Engine: its own count of tokens a second. `hit_rate`: of its prefix cache, 0 to 1."""

    level: str
    client_lag_ms: float | None
    chunk_gap_p95_ms: float | None
    engine_tokens_per_second: float | None
    hit_rate: float | None
    errors: str


def level_details(evidence: object) -> list[LevelDetail]:
    """By rising level; none where llmgw did not run the sweep."""
    levels = _within(evidence, "sweep", "levels")
    if not isinstance(levels, Mapping):
        return []
    named = [(str(level), row) for level, row in levels.items() if str(level).isdecimal() and isinstance(row, Mapping)]
    return [_detail(level, row) for level, row in sorted(named, key=lambda pair: int(pair[0][:10]))]


def sweep_facts(evidence: object) -> list[tuple[str, str]]:
    """How it was asked, in words."""
    told = {**_mapping(_within(evidence, "sweep", "asked")), **_mapping(_within(evidence, "sweep"))}
    return [(words, _said(told[key])) for key, words in FACTS if isinstance(told.get(key), str | bool)]


def _detail(level: str, row: Mapping[str, Any]) -> LevelDetail:
    kinds, first = _mapping(row.get("error_kinds")), row.get("first_error")
    counted = ", ".join(f"{count} × {kind}" for kind, count in kinds.items() if isinstance(count, int))
    return LevelDetail(
        level=level,
        client_lag_ms=_number(row.get("client_lag_ms")),
        chunk_gap_p95_ms=_number(_mapping(row.get("itl_ms")).get("p95")),
        engine_tokens_per_second=_number(row.get("engine_output_tokens_per_second")),
        hit_rate=_number(row.get("prefix_cache_hit_rate")),
        errors=f"{counted}: {first}" if counted and isinstance(first, str) else counted,
    )


def _within(document: object, *path: str) -> object:
    for step in path:
        document = document.get(step) if isinstance(document, Mapping) else None
    return document


def _mapping(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _number(found: object) -> float | None:
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def _said(value: str | bool) -> str:
    return value if isinstance(value, str) else "yes" if value else "no"
