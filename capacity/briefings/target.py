"""What a model would take on the live fleet: its pool's snapshot, the prices in force, and how old what was read is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from quotas.models import User
from quotas.seen import Seen

from ..clock import iso
from ..domain.sizing import Answer, Question, WrongQuestion, target, target_document, withheld
from ..domain.sizing.cost import Cost, UnitPrice, cost_of
from ..models import LanguageModel, Price
from ..reconcile import pools, unbroken_since
from ..snapshot import Built, build
from ..wiring import deps


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`inputs`: when what was read says that it was read (null: never); `built` is what the answer was made of."""

    answer: Answer
    cost: Cost | None
    cost_note: str
    inputs: Mapping[str, str | None]
    built: Built

    @property
    def document(self) -> dict[str, Any]:
        return target_document(self.answer, self.cost, self.cost_note, self.inputs)


def target_for(user: User, model: LanguageModel, question: Question, now: datetime) -> Target:
    """As `target_of`, for somebody who may not see every scope: one that is foreign is none, and what it allows is withheld."""
    if user.sees_everything:
        return target_of(model, question, now)
    seen = Seen(user)
    if question.scope is not None and not seen.scope(question.scope):
        raise WrongQuestion("scope", f"There is no scope {question.scope}.")
    found = target_of(model, question, now)
    return replace(found, answer=withheld(found.answer, seen.scope, seen.binding))


def target_of(model: LanguageModel, question: Question, now: datetime) -> Target:
    """Reads the live pool; writes nothing. Raises `WrongQuestion`."""
    lease = pools(pk=model.pool_id)[0]
    built = build(deps(), lease, now, unbroken_since(lease, now))
    if built.snapshot.models and all(row.name != model.name for row in built.snapshot.models):
        raise WrongQuestion("model", f"The row of {model.name} is not valid, so no pass knows it.")
    answer = target(built.snapshot, model.name, question, built.policy)
    cost, note = cost_of(answer, prices_of(model.pool_id, now))
    return Target(answer=answer, cost=cost, cost_note=note, inputs=inputs_of(built), built=built)


def prices_of(pool: int, now: datetime) -> dict[str, UnitPrice]:
    """Class → the price in force: the newest that has begun."""
    rows = Price.objects.filter(pool=pool, since__lte=now).order_by("since", "id")
    return {row.resource: UnitPrice(per_unit_hour=row.per_unit_hour, currency=row.currency) for row in rows}


def inputs_of(built: Built) -> dict[str, str | None]:
    reported = [sight.reported_at for sight in built.observed.nodes.values() if sight.reported_at] if built.observed else []
    return {
        "quotas_read_at": _read_at(built, "quotas"),
        "measurements_read_at": _read_at(built, "measurements"),
        "oldest_host_report_at": iso(min(reported)) if reported else None,
    }


def _read_at(built: Built, view: str) -> str | None:
    text = built.views[view]["read_at"]
    return iso(datetime.fromisoformat(text)) if text else None
