"""What is known before a model is switched to another mode: its scorecard, its evidence, and the next pass in that mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from ..braking import Held, hold
from ..clock import iso
from ..domain.plan import plan
from ..domain.scorecard import Side, Worst
from ..domain.types import Action, Decision, Plan
from ..models import LanguageModel, Measurement, Profile
from ..reconcile import advise, pools
from ..services.modes import doubts, in_use, is_located
from ..snapshot import Built
from ..wiring import deps
from .scorecards import Card, card_of

NEXT: Final = {"paused": "advise", "advise": "add_only", "add_only": "auto", "auto": "advise"}
"""The mode that is looked at first."""
STARTS: Final = frozenset({"start", "undrain"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The next pass as it would be in `mode`. `actions` are the model's, advice among them; `withheld`: by the brake; `others`:
    what other models would do that they do not do now; `decision` None: its pass does not know the model yet."""

    mode: str
    decision: Decision | None
    actions: Sequence[Action]
    withheld: Sequence[Action]
    others: Sequence[Action]

    @property
    def starts(self) -> int:
        return sum(1 for action in self.actions if action.op in STARTS and not action.advice)

    @property
    def stops(self) -> int:
        return sum(1 for action in self.actions if action.op not in STARTS and not action.advice)

    @property
    def advised(self) -> int:
        return sum(1 for action in self.actions if action.advice)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`evidence`: profile and its measurement in use; `doubts`: why a reason is asked for."""

    model: LanguageModel
    card: Card
    preview: Preview
    evidence: Sequence[tuple[Profile, Measurement | None]]
    doubts: Sequence[str]


def facts_of(model: LanguageModel, mode: str, now: datetime) -> Facts:
    """Reads the live pool; writes nothing."""
    lease = pools(pk=model.pool_id)[0]
    built, current = advise(deps(), lease, now)
    held = hold(lease, built, in_mode(built, model.name, mode), now)
    card = card_of(model, built, now)
    return Facts(
        model=model,
        card=card,
        preview=preview(held, current, model.name, mode),
        evidence=in_use(model),
        doubts=doubts(model, now, timedelta(seconds=card.card.covered_seconds)),
    )


def in_mode(built: Built, name: str, mode: str) -> Plan:
    models = tuple(replace(m, mode=mode) if m.name == name else m for m in built.snapshot.models)
    return plan(replace(built.snapshot, models=models), built.policy)


def preview(held: Held, current: Plan, name: str, mode: str) -> Preview:
    """`held`: the pass in that mode; `current`: the plan as the modes stand."""
    done = {_key(action) for action in current.actions if not action.advice}
    actions = held.plan.actions
    return Preview(
        mode=mode,
        decision=next((decision for decision in held.plan.decisions if decision.model == name), None),
        actions=[action for action in actions if action.model == name],
        withheld=[found.action for found in held.withheld if found.action.model == name],
        others=[action for action in actions if action.model != name and not action.advice and _key(action) not in done],
    )


def _key(action: Action) -> tuple[Any, ...]:
    return action.op, action.model, action.profile, action.replica, action.nodes


def document(facts: Facts, *, with_preview: bool = True) -> dict[str, Any]:
    """As the API and the command write it."""
    card = facts.card.card
    return {
        "model": facts.model.name,
        "mode": facts.model.mode,
        "scorecard": {
            "covered_days": round(card.covered_days, 2),
            "start_seconds": facts.card.start_seconds,
            "starts_seen": facts.card.starts_seen,
            "llmgw": _side(card.kept),
            "ran": _side(card.ran),
        },
        "evidence": [_evidence(profile, measurement) for profile, measurement in facts.evidence],
        "reason_needed": list(facts.doubts),
        "next_pass": _preview(facts.preview) if with_preview else None,
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "adds": side.adds,
        "removals": side.removals,
        "unit_hours": {resource: round(hours, 2) for resource, hours in side.unit_hours.items()},
        "short_minutes": round(side.short_minutes, 1),
        "worst": _worst(side.worst),
    }


def _worst(worst: Worst | None) -> dict[str, Any] | None:
    return None if worst is None else {"at": iso(worst.at), "demand": worst.demand, "capacity": worst.capacity}


def _evidence(profile: Profile, measurement: Measurement | None) -> dict[str, Any]:
    return {
        "profile": profile.name,
        "status": measurement.status if measurement else None,
        "kind": (measurement.kind or None) if measurement else None,
        "max_concurrency": measurement.max_concurrency if measurement else None,
        "is_located": is_located(measurement),
    }


def _preview(found: Preview) -> dict[str, Any]:
    return {
        "mode": found.mode,
        "starts": found.starts,
        "stops": found.stops,
        "advice": found.advised,
        "why": found.decision.why if found.decision else "",
        "actions": [_action(action) for action in found.actions],
        "withheld": [_action(action) for action in found.withheld],
        "others": [{"model": action.model, **_action(action)} for action in found.others],
    }


def _action(action: Action) -> dict[str, Any]:
    return {
        "op": action.op,
        "profile": action.profile,
        "replica": action.replica,
        "nodes": list(action.nodes),
        "reason": action.reason,
        "advice": action.advice,
    }
