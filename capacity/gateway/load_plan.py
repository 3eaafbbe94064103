"""The load that the example gateway makes: requests per second of each model as a function of time.

A plan is a JSON file, or the built-in one:

    {"cycle_seconds": 240,
     "models": {"chat": {"series": "conversation", "low_per_second": 0.3, "high_per_second": 4.4, "output_tokens": 100,
                         "prompt_words": 60, "phase": 0.4, "contrast": 1.5, "from_seconds": 0, "quiet_from_seconds": 240}}}

The series is played once a cycle, from its `phase` (share of its length) on, between the low and the high rate; `contrast` is the
power to which its share is raised. Before `from_seconds` and from `quiet_from_seconds` on a cycle is quiet.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from capacity.gateway.series import SERIES

MAX_PER_SECOND = 1_000
MAX_CYCLE_SECONDS = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLoad:
    series: str = "conversation"
    low_per_second: float = 0.0
    high_per_second: float
    output_tokens: int = 100
    prompt_words: int = 60
    phase: float = 0.0
    contrast: float = 1.0
    from_seconds: float = 0.0
    quiet_from_seconds: float = MAX_CYCLE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    cycle_seconds: float
    models: Mapping[str, ModelLoad]

    def per_second(self, model: str, seconds: float) -> float:
        """The model's request rate, `seconds` after the load began."""
        load = self.models[model]
        within = seconds % self.cycle_seconds
        if not load.from_seconds <= within < load.quiet_from_seconds:
            return 0.0
        share = share_at(SERIES[load.series], load.phase + within / self.cycle_seconds)
        return load.low_per_second + (load.high_per_second - load.low_per_second) * math.pow(share, load.contrast)


# Made for engines of which a request to `chat` takes about 4.2 s, to `code` 5.1 s and to `summarize` 4.3 s (see the example's
# profiles). chat rises from 6 requests in flight past 8 within ten seconds and to 18 in the 50th, is back at 5 from the 75th on
# and at 2 from the 115th; code goes between 4 and 9; summarize sleeps, is woken in the 40th and left alone from the 70th on.
BUILT_IN = LoadPlan(
    cycle_seconds=240,
    models={
        "chat": ModelLoad(
            series="conversation", low_per_second=0.3, high_per_second=4.4, output_tokens=84, phase=0.336, contrast=1.7
        ),
        "code": ModelLoad(
            series="long_context", low_per_second=0.7, high_per_second=1.8, output_tokens=200, prompt_words=200, phase=0.1
        ),
        "summarize": ModelLoad(
            series="conversation",
            low_per_second=0.2,
            high_per_second=0.4,
            output_tokens=85,
            prompt_words=400,
            from_seconds=40,
            quiet_from_seconds=70,
        ),
    },
)

# Field → the lowest and the highest value that a plan's file may give.
_BOUNDS: Mapping[str, tuple[float, float]] = {
    "low_per_second": (0, MAX_PER_SECOND),
    "high_per_second": (0, MAX_PER_SECOND),
    "phase": (0, 1),
    "contrast": (0.1, 10),
    "from_seconds": (0, MAX_CYCLE_SECONDS),
    "quiet_from_seconds": (0, MAX_CYCLE_SECONDS),
}
_LENGTHS: Mapping[str, tuple[int, int]] = {"output_tokens": (1, 100_000), "prompt_words": (1, 100_000)}


def share_at(series: tuple[int, ...], position: float) -> float:
    """The series at a position (1 is once through), 0 to 1, in straight lines between its numbers and round at its end."""
    point = (position % 1.0) * len(series)
    left = int(point) % len(series)
    right = (left + 1) % len(series)
    weight = point - int(point)
    return (series[left] * (1 - weight) + series[right] * weight) / 100


def parse_load_plan(text: str) -> LoadPlan:
    """A plan out of its JSON; ValueError with one sentence that names the place."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        where = f" (line {wrong.lineno})" if isinstance(wrong, json.JSONDecodeError) else ""
        raise ValueError(f"The load plan is not JSON{where}.") from None
    _check_keys(document, {"cycle_seconds", "models"}, "$")
    models = document.get("models")
    if not isinstance(models, dict) or not models:
        raise ValueError("$.models must name at least one model.")
    cycle = _number(document.get("cycle_seconds", BUILT_IN.cycle_seconds), 1, MAX_CYCLE_SECONDS, "$.cycle_seconds")
    return LoadPlan(cycle_seconds=cycle, models={name: _model(row, f"$.models.{name}") for name, row in models.items()})


def _model(row: Any, path: str) -> ModelLoad:
    _check_keys(row, {field.name for field in fields(ModelLoad)}, path)
    if "high_per_second" not in row:
        raise ValueError(f"{path}.high_per_second is required.")
    series = row.get("series", "conversation")
    if not isinstance(series, str) or series not in SERIES:
        raise ValueError(f"{path}.series must be one of {', '.join(SERIES)}.")
    numbers: dict[str, Any] = {
        name: _number(row[name], *bounds, f"{path}.{name}") for name, bounds in _BOUNDS.items() if name in row
    }
    lengths: dict[str, Any] = {
        name: _whole(row[name], *bounds, f"{path}.{name}") for name, bounds in _LENGTHS.items() if name in row
    }
    return ModelLoad(series=series, **numbers, **lengths)


def _check_keys(row: Any, known: set[str], path: str) -> None:
    if not isinstance(row, dict):
        raise ValueError(f"{path} must be an object.")
    unknown = sorted(row.keys() - known)
    if unknown:
        raise ValueError(f"{path} has an unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}.")


def _number(value: Any, low: float, high: float, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or not low <= value <= high:
        raise ValueError(f"{path} must be a number from {low:g} to {high:g}.")
    return float(value)


def _whole(value: Any, low: int, high: int, path: str) -> int:
    number = _number(value, low, high, path)
    if number != int(number):
        raise ValueError(f"{path} must be a whole number from {low} to {high}.")
    return int(number)
