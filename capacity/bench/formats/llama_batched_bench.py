"""llama.cpp's llama-batched-bench (`--output-format jsonl`): output tokens a second by parallel sequences, no latency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capacity.bench.formats import values
from capacity.bench.formats.contract import Opened
from capacity.domain.measurement.types import Contents, Setting, Skipped, Stage

NAME: Final = "llama-batched-bench"

_KEYS: Final = ("pl", "speed_tg", "n_kv")
_APART: Final = ("n_batch", "n_ubatch", "n_gpu_layers", "n_threads", "flash_attn", "is_pp_shared")


def recognises(opened: Opened) -> bool:
    return opened.shape != "csv" and bool(opened.documents) and _is_row(opened.documents[0])


def read(opened: Opened) -> Contents:
    """A stage for each number of parallel sequences; a curve that no bound on latency can be judged by."""
    return values.contents(_row(f"{opened.where}, row {place}", row) for place, row in enumerate(opened.documents, 1))


def _is_row(document: Any) -> bool:
    return isinstance(document, Mapping) and all(key in document for key in _KEYS)


def _row(where: str, found: Any) -> values.Row:
    level = values.level(found.get("pl")) if _is_row(found) else None
    if level is None:
        return Skipped(where=where, why="it names no number of parallel sequences.")
    stage = Stage(
        where=where,
        asked=level,
        seconds=values.positive(found.get("t")),
        tokens_per_second=values.positive(found.get("speed_tg")),
        flags=values.flags(None),
    )
    return _setting(found), stage


def _setting(found: Mapping[str, Any]) -> Setting:
    variant = values.hints(**{key: found.get(key) for key in _APART})
    return Setting(
        tool=NAME,
        engine="llama.cpp",
        input_tokens=values.rounded(found.get("pp")),
        output_tokens=values.rounded(found.get("tg")),
        variant=", ".join(f"{key} {shown}" for key, shown in variant.items()) or None,
    )
