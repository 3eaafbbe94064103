"""What a GuideLLM file says of the model, the lengths and the tool; addresses, keys and prompts in it are not taken."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from capacity.bench.formats import values
from capacity.bench.formats.guidellm.stages import NAME
from capacity.domain.measurement.types import Setting

_MOST_LABELS = 12


def setting(*, version: Any, model: Iterable[Any], data: Any, hints: Mapping[str, str]) -> Setting:
    """`model`: where it may stand, best place first. `data`: the data set or the lengths to draw, in the file's own form."""
    lengths = _lengths(data)
    return Setting(
        tool=NAME,
        tool_version=values.text(version),
        model=next((name for found in model if (name := values.text(found))), None),
        input_tokens=values.rounded(lengths.get("prompt_tokens")),
        output_tokens=values.rounded(lengths.get("output_tokens")),
        dataset="synthetic" if "prompt_tokens" in lengths else _name(data),
        hints=dict(hints),
    )


def parsed(cell: Any) -> dict[str, Any]:
    """The object that a CSV cell holds as JSON; {} where it holds none."""
    try:
        found = json.loads(cell)
    except (TypeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def labels(found: Any) -> dict[str, str]:
    """Free labels of newer files (`hardware`, `replicas`), for the person to see."""
    items = list(found.items())[:_MOST_LABELS] if isinstance(found, Mapping) else []
    return {name: shown for key, value in items if (name := values.text(key)) and (shown := values.text(str(value)))}


def _lengths(data: Any) -> Mapping[str, Any]:
    """`[{"prompt_tokens": 64}]`, `["prompt_tokens=64,output_tokens=32"]`, that text itself, or the same as JSON."""
    if isinstance(data, list):
        return _lengths(data[0]) if len(data) == 1 and not isinstance(data[0], list) else {}
    if isinstance(data, Mapping):
        return data
    if not isinstance(data, str):
        return {}
    pairs = (pair.partition("=") for pair in data.split(","))
    return parsed(data) or {name.strip(): length.strip() for name, equals, length in pairs if equals}


def _name(data: Any) -> str | None:
    """The last part of a data set's path or name."""
    first = data[0] if isinstance(data, list) and data else data
    named = values.text(first.get("source") or first.get("path") if isinstance(first, Mapping) else first)
    return PurePosixPath(named).name or None if named else None
