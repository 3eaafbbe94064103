"""Whether an import's answer is what a shared case expects, as the README of the cases reads it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

RULES = ("between", "contains", "not", "at_most")


def matches(wanted: Any, found: Any) -> bool:
    """Partial: what `wanted` does not name is free."""
    if isinstance(wanted, Mapping):
        return _rule(wanted, found) if set(wanted) <= set(RULES) and wanted else _object(wanted, found)
    if isinstance(wanted, list):
        return isinstance(found, list) and all(any(matches(entry, other) for other in found) for entry in wanted)
    if isinstance(wanted, float):
        return isinstance(found, int | float) and math.isclose(found, wanted, rel_tol=1e-4)
    return found == wanted


def _rule(wanted: Mapping[str, Any], found: Any) -> bool:
    if "between" in wanted:
        low, high = wanted["between"]
        return found is not None and low * (1 - 1e-4) <= found <= high * (1 + 1e-4)
    if "contains" in wanted:
        return found is not None and _plain(wanted["contains"]) in _plain(str(found))
    return found not in wanted["not"] if "not" in wanted else found is None or found <= wanted["at_most"]


def _object(wanted: Mapping[str, Any], found: Any) -> bool:
    if found is None:
        return bool(wanted) and all(isinstance(value, Mapping) and set(value) <= {"not", "at_most"} for value in wanted.values())
    return all(_key(key, value, found) for key, value in wanted.items())


def _key(key: str, wanted: Any, found: Mapping[str, Any]) -> bool:
    if key == "stages_count":
        return len(found["stages"]) == wanted
    if key == "stages_at_most":
        return len(found["stages"]) <= wanted
    if key == "mentions":
        return all(_plain(word) in _plain(json.dumps(found)) for word in wanted)
    return key in found and matches(wanted, found[key])


def _plain(text: str) -> str:
    return re.sub(r"[-_]", "", text.lower())


def check_every_answer(answer: Mapping[str, Any]) -> None:
    """What each answer keeps, whatever was read."""
    for sweep in answer["sweeps"]:
        assert sweep["why"].strip()
        assert all(number >= 0 for stage in sweep["stages"] for number in numbers(stage))
        found = sweep["measurement"]
        if found is not None and found["kind"] in ("located", "at_least"):
            assert any(_is_of(stage, found) for stage in sweep["stages"]), (found, sweep["stages"])


def _is_of(stage: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Both numbers come from this stage; its level is within a tenth, or the half that rounding takes."""
    near = abs(stage["concurrency"] - found["max_concurrency"]) <= max(0.5, 0.1 * found["max_concurrency"])
    return bool(near and stage["tokens_per_second"] == found["tokens_per_second"])


def numbers(found: Any) -> Sequence[float]:
    if isinstance(found, Mapping):
        return [number for value in found.values() for number in numbers(value)]
    if isinstance(found, list):
        return [number for value in found for number in numbers(value)]
    return [found] if isinstance(found, int | float) and not isinstance(found, bool) else []
