"""What a pass leaves in the models' rows for the next one: only what has changed, in one query."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from ..domain.types import Decision as PlannedDecision
from ..domain.types import Plan
from ..models import LanguageModel
from ..rows import ModelRow
from ..snapshot import Built
from . import bulk

if TYPE_CHECKING:
    from .record import Turn


def write_models(turn: Turn, built: Built, plan: Plan, decisions: Mapping[str, int], touched: set[str]) -> None:
    """The few fields that the next pass needs: last change, since when it is short, since when its loads
    disagree, and its newest decision."""
    touched = touched | {action.model for action in plan.actions if not action.advice}
    changed = []
    for planned in plan.decisions:
        row = built.rows.models[planned.model]
        values = {
            "last_change_at": turn.now if planned.model in touched else row.last_change_at,
            "short_since": short_since(row, planned, turn.now),
            "disagree_since": built.disagree_since.get(planned.model),
            "last_decision_id": decisions[planned.model],
        }
        before = (row.last_change_at, row.short_since, row.disagree_since, row.decision.id if row.decision else None)
        if tuple(values.values()) != before:
            changed.append(LanguageModel(pk=row.id, **values))
    bulk.update(changed, ["last_change_at", "short_since", "disagree_since", "last_decision"])


SHORT = frozenset({"no_room", "at_limit", "guarantee_reserved", "awaiting_reclaim", "policy_unavailable", "room_unknown"})
STOPS = frozenset({"limit", "room", "guarantee_reserved", "unknown", "backoff"})


def short_since(row: ModelRow, planned: PlannedDecision, now: datetime) -> datetime | None:
    """First pass of an unbroken need that quota or room stopped, in whole or in part."""
    is_short = planned.reason in SHORT or (planned.outcome == "add" and any(stop.kind in STOPS for stop in planned.limited_by))
    return (row.short_since or now) if is_short else None
