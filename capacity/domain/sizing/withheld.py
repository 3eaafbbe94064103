"""An answer for somebody who may not see every scope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from capacity.domain.sizing.types import Answer, MissingLimit, MissingUnits
from capacity.domain.types import LimitedBy


def withheld(answer: Answer, may_see: Callable[[str], bool]) -> Answer:
    """What binds keeps its kind and class, what is missing its number; foreign scopes, their limits and use are left out."""
    return replace(
        answer,
        binding=_each_once([_stop(stop, may_see) for stop in answer.binding]),
        missing=tuple(_missing(row, may_see) for row in answer.missing),
        path=tuple(row for row in answer.path if may_see(row.scope)),
    )


def _each_once(stops: list[LimitedBy]) -> tuple[LimitedBy, ...]:
    return tuple(stop for index, stop in enumerate(stops) if stop not in stops[:index])


def _stop(stop: LimitedBy, may_see: Callable[[str], bool]) -> LimitedBy:
    if "scope" not in stop.facts or may_see(str(stop.facts["scope"])):
        return stop
    return LimitedBy(kind=stop.kind, facts={key: value for key, value in stop.facts.items() if key == "target"})


def _missing(row: MissingUnits | MissingLimit, may_see: Callable[[str], bool]) -> MissingUnits | MissingLimit:
    if isinstance(row, MissingUnits) or row.scope is None or may_see(row.scope):
        return row
    return replace(row, scope=None)
