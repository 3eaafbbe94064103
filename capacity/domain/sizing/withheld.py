"""An answer for somebody who may not see every scope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from capacity.domain.sizing.types import Answer, MissingLimit, MissingUnits
from capacity.domain.types import LimitedBy

May = Callable[[str], bool]


def withheld(answer: Answer, may_see: May, is_bound_by: May) -> Answer:
    """What binds keeps its kind and class, what is missing its number; foreign scopes, their limits and use are left out.
    A limit that stops more is told with its scope where that stands above the asker (`is_bound_by`)."""
    return replace(
        answer,
        binding=_each_once([_stop(stop, is_bound_by if stop.kind == "limit" else may_see) for stop in answer.binding]),
        missing=tuple(_missing(row, is_bound_by) for row in answer.missing),
        path=tuple(row for row in answer.path if may_see(row.scope)),
    )


def _each_once(stops: list[LimitedBy]) -> tuple[LimitedBy, ...]:
    return tuple(stop for index, stop in enumerate(stops) if stop not in stops[:index])


def _stop(stop: LimitedBy, may_tell: May) -> LimitedBy:
    if "scope" not in stop.facts or may_tell(str(stop.facts["scope"])):
        return stop
    return LimitedBy(kind=stop.kind, facts={key: value for key, value in stop.facts.items() if key == "target"})


def _missing(row: MissingUnits | MissingLimit, may_tell: May) -> MissingUnits | MissingLimit:
    if isinstance(row, MissingUnits) or row.scope is None or may_tell(row.scope):
        return row
    return replace(row, scope=None)
