"""What every page says of brakes: pulled, or withholding something. Only what the reader may see is named or counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..briefings.brake_state import amounts, is_pulled, standing_rows
from ..domain.phrases import names
from ..models import Brake, LanguageModel

if TYPE_CHECKING:
    from .frame import Frame

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A pool whose brake is on or withholds something. `rows`: what is withheld of the models that the reader may see."""

    pool: str
    brake: Brake
    is_on: bool
    rows: Sequence[Row]

    @property
    def amounts(self) -> str:
        return amounts(list(self.rows))

    def by_rule(self) -> Mapping[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row["rule"], []).append(row)
        return found


def marks(frame: Frame) -> list[Mark]:
    pools = [pool for pool in frame.shown_pools if pool.brake.is_on or pool.brake.withheld]
    seen = visible_models(frame, pools)
    found = []
    for pool in pools:
        rows = [row for row in standing_rows(pool.brake, frame.now) if seen is None or row["model"] in seen]
        is_on = is_pulled(pool.brake, frame.now)
        if is_on or rows:
            found.append(Mark(pool=pool.name, brake=pool.brake, is_on=is_on, rows=rows))
    return found


def visible_models(frame: Frame, pools: Iterable[Any]) -> set[str] | None:
    """The names among the withheld that the reader may see; None: all."""
    withheld = {row["model"] for pool in pools for row in pool.brake.withheld}
    if frame.user.sees_everything or not withheld:
        return None
    return set(LanguageModel.objects.visible_to(frame.user).filter(name__in=withheld).values_list("name", flat=True))


def since(rows: Sequence[Row]) -> datetime:
    """Since when the first of them is withheld."""
    return min(datetime.fromisoformat(row["since"]) for row in rows)


def subjects(rows: Sequence[Row]) -> str:
    return names(sorted({str(row["model"]) for row in rows}))
