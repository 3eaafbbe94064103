"""What a file says, held to what can be: no infinity, no count below 0, no latency of 0 ms, no percentile without a name."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Final

from .types import Stage, Statistics

LARGEST: Final = 1e12
"""Beyond it a number of a file is no figure of a server."""
_NAME: Final = re.compile(r"mean|p[0-9]{1,2}(?:\.[0-9]{1,4})?")


def sound(stage: Stage) -> Stage:
    """The same stage; what cannot be has become unknown. A latency of 0.0 is how tools write that nothing succeeded."""
    return replace(
        stage,
        asked=_count(stage.asked) or None,
        mean_in_flight=_rate(stage.mean_in_flight) or None,
        requests=_count(stage.requests),
        errors=_count(stage.errors),
        incomplete=_count(stage.incomplete),
        seconds=_rate(stage.seconds) or None,
        tokens_per_second=_rate(stage.tokens_per_second),
        ttft_ms=_statistics(stage.ttft_ms),
        tpot_ms=_statistics(stage.tpot_ms),
        e2e_ms=_statistics(stage.e2e_ms),
    )


def _statistics(found: Statistics) -> Statistics:
    return {name: float(ms) for name, ms in found.items() if _NAME.fullmatch(name) and (_rate(ms) or 0) > 0}


def _rate(value: float | None) -> float | None:
    if value is None or isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST:
        return None
    return float(value) if math.isfinite(value) else None


def _count(value: int | None) -> int | None:
    found = _rate(value)
    return None if found is None or not found.is_integer() else int(found)
