"""What models are entitled to, clipped to limits that funding does not see: those of parents that do not fund, those on paths
over several classes, and those on a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from quotas.domain.allocation import Ask, Steps
from quotas.domain.types import Quota, covers

Entitled = dict[tuple[str, str], int]
"""(model, class) → units in whole replicas: so many of the first of its steps."""
Members = dict[tuple[str, str], tuple[Quota, list[tuple[Ask, str]]]]
"""(scope, target) of a row → the row, and the asks below it with their classes."""

_LATEST = datetime.max.replace(tzinfo=UTC)


def clip(asks: Mapping[str, Iterable[Ask]], entitled: Entitled, limits_over: Callable[[str], Iterable[Quota]]) -> None:
    """Lower `entitled` until no row has more below it than its limit: the newest wishes go first, then the lowest priority."""
    members: Members = {}
    for resource, rows in asks.items():
        for ask in rows:
            if entitled.get((ask.model, resource)):
                _join(members, ask, resource, limits_over(ask.scope))
    for _, (row, below) in sorted(members.items(), key=lambda entry: entry[0]):
        excess = sum(_counted(row, ask, entitled[ask.model, resource]) for ask, resource in below) - (row.limit or 0)
        if excess > 0:
            _lower(row, below, entitled, excess)


def _join(members: Members, ask: Ask, resource: str, limits: Iterable[Quota]) -> None:
    for row in limits:
        if covers(row.target, resource) if row.model is None else row.model == ask.model:
            members.setdefault((row.scope, row.target), (row, []))[1].append((ask, resource))


def _counted(row: Quota, ask: Ask, units: int) -> int:
    """Units, or for a row on a model how many replicas they are."""
    if row.model is None:
        return units
    counted = 0
    for size, count in (*ask.using, *ask.wishes):
        taken = min(count, units // size)
        units -= size * taken
        counted += taken
    return counted


def _lower(row: Quota, below: list[tuple[Ask, str]], entitled: Entitled, excess: int) -> None:
    newest = sorted(below, key=lambda entry: (entry[0].short_since or _LATEST, -entry[0].priority, entry[0].model), reverse=True)
    least = sorted(below, key=lambda entry: (-entry[0].priority, entry[0].model), reverse=True)
    for order, floor in ((newest, lambda ask: ask.used), (least, lambda ask: 0)):
        for ask, resource in order:
            if excess <= 0:
                return
            excess -= _take(row, ask, resource, entitled, excess, floor(ask))


def _take(row: Quota, ask: Ask, resource: str, entitled: Entitled, excess: int, floor: int) -> int:
    """Whole replicas off the end of what the ask is entitled to, down to `floor`; returns what that lowers the row by."""
    has = entitled[ask.model, resource]
    taken = 0
    for size, count in reversed(_reached(ask, has)):
        each = size if row.model is None else 1
        spare = max(0, has - floor) // size
        number = min(count, spare, -(-(excess - taken) // each))
        has -= size * number
        taken += each * number
        if number < count:
            break
    entitled[ask.model, resource] = has
    return taken


def _reached(ask: Ask, units: int) -> Steps:
    """The steps that `units` are made of, from the first on."""
    found = []
    for size, count in (*ask.using, *ask.wishes):
        taken = min(count, units // size)
        found.append((size, taken))
        units -= size * taken
    return tuple(found)
