"""A `Plan` as its JSON document, `llmgw.plan/1`."""

from __future__ import annotations

from typing import Any, Final

from capacity.domain.snapshot.document import instant
from capacity.domain.types import Action, Decision, Plan

FORMAT: Final = "llmgw.plan/1"


def plan_document(plan: Plan) -> dict[str, Any]:
    """The document of a plan; keys and their order as the format has them."""
    return {
        "format": FORMAT,
        "at": instant(plan.at),
        "actions": [_action(action) for action in plan.actions],
        "decisions": [_decision(decision) for decision in plan.decisions],
        "problems": [{"code": p.code, "subject": p.subject, "detail": p.detail} for p in plan.problems],
    }


def _action(action: Action) -> dict[str, Any]:
    found: dict[str, Any] = {"op": action.op}
    if action.op == "start":
        found |= {"model": action.model, "profile": action.profile, "nodes": list(action.nodes)}
    else:
        found["replica"] = action.replica
    found["reason"] = action.reason
    if action.returned_for is not None:
        found["for"] = action.returned_for
    if action.advice:
        found["advice"] = True
    return found


def _decision(decision: Decision) -> dict[str, Any]:
    return {
        "model": decision.model,
        "outcome": decision.outcome,
        "reason": decision.reason,
        "count": decision.count,
        "demand_low": decision.demand_low,
        "demand_high": decision.demand_high,
        "capacity_ready": decision.capacity_ready,
        "capacity_starting": decision.capacity_starting,
        "adds_above": decision.adds_above,
        "removes_below": decision.removes_below,
        "limited_by": [{"kind": stop.kind, **stop.facts} for stop in decision.limited_by],
        "why": decision.why,
    }
