"""When a gateway's and an engine's count of one replica are too far apart to be two looks at the same thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from capacity.domain.phrases import names

ALWAYS_ALLOWED: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Requests in flight on one replica, as all gateways together and as the engine itself count them now."""

    replica: str
    gateways: int
    engine: int

    def __str__(self) -> str:
        return f"{self.replica}: gateways {self.gateways}, engine {self.engine}"


def differ(gateways: int, engine: int) -> bool:
    """By more than 2 requests and more than a quarter of the larger: requests come and go between the two readings."""
    return abs(gateways - engine) > ALWAYS_ALLOWED and 4 * abs(gateways - engine) > max(gateways, engine)


def blocks(since: datetime, window_seconds: int, now: datetime) -> bool:
    """Whether it has lasted a down window: then no removal stands on either count."""
    return now - since >= timedelta(seconds=window_seconds)


def sentence(found: Sequence[Disagreement], *, is_blocking: bool) -> str:
    """Which replicas, both numbers, and what follows."""
    follows = "it lasts, so nothing is taken back until they agree" if is_blocking else "the larger counts"
    return f"{names([str(one) for one in found])} in flight: {follows}."
