"""Which models' replicas turned unready together: what a broken probe, certificate or network rule looks like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from capacity.domain.brake.types import Together

TOGETHER: Final = timedelta(seconds=120)
"""Hosts look at health every few seconds and need some looks in a row, each at its own time; passes see it later still."""
FEWEST: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A ready or unready replica of a model. `since`: of its state; `ready_at`: first ready, None never or not known."""

    model: str
    is_ready: bool
    since: datetime
    ready_at: datetime | None


def together(replicas: Iterable[Standing]) -> Mapping[str, Together]:
    """Models of which at least two, and half of what they had then, turned unready within `TOGETHER` of each other.

    What came up afterwards is no witness: it says nothing of those that turned. What has recovered since is one."""
    by_model: dict[str, list[Standing]] = {}
    for found in replicas:
        by_model.setdefault(found.model, []).append(found)
    return {model: turned for model, rows in sorted(by_model.items()) if (turned := _turned(rows)) is not None}


def _turned(rows: Sequence[Standing]) -> Together | None:
    times = sorted(row.since for row in rows if not row.is_ready)
    if len(times) < FEWEST:
        return None
    count, last = _largest(times)
    witnesses = sum(1 for row in rows if row.is_ready and (row.ready_at or row.since) <= last)
    of = len(times) + witnesses
    return Together(count=count, of=of) if count >= FEWEST and 2 * count >= of else None


def _largest(times: Sequence[datetime]) -> tuple[int, datetime]:
    """How many lie within `TOGETHER` at most, and the last of them; of several such groups the newest."""
    best, first = (0, times[0]), 0
    for index, at in enumerate(times):
        while at - times[first] > TOGETHER:
            first += 1
        best = max(best, (index - first + 1, at))
    return best
