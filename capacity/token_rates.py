"""Output tokens a second from counters that engines keep. A counter that fell began anew: what it says now came since then."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from .ports import Sample


class TokenRates:
    """Remembers each replica's last counter between two passes; those of replicas that are gone are forgotten."""

    def __init__(self) -> None:
        self._last: dict[str, dict[str, tuple[int, datetime]]] = {}

    def rates(self, pool: str, samples: Mapping[str, Sample]) -> dict[str, float]:
        """Replica → tokens a second since its last reading; absent where there was none."""
        before = self._last.get(pool, {})
        now = {name: (s.output_tokens_total, s.sampled_at) for name, s in samples.items() if s.output_tokens_total is not None}
        # the same reading twice: keep measuring from the older one; an earlier time is a clock that was set back
        self._last[pool] = {
            name: before[name] if name in before and before[name][1] == at else (n, at) for name, (n, at) in now.items()
        }
        return {
            name: rate for name, (n, at) in now.items() if name in before and (rate := _rate(before[name], n, at)) is not None
        }


def _rate(before: tuple[int, datetime], tokens: int, at: datetime) -> float | None:
    seconds = (at - before[1]).total_seconds()
    made = tokens - before[0] if tokens >= before[0] else tokens
    return made / seconds if seconds > 0 else None
