"""Writes what a pass saw and decided, in one transaction, before anything is done. A late writer is refused by the lease."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db import transaction

from .. import braking
from .. import lease as leases
from ..braking import Held
from ..domain.backoff import Failure
from ..domain.types import Action as PlannedAction
from ..domain.types import Decision as PlannedDecision
from ..domain.types import Plan
from ..fingerprints import run_print
from ..models import Action, Decision, Lease, Pass, Replica
from ..replica_names import new_name
from ..rows import DecisionRow, ModelRow
from ..snapshot import Built
from . import backoff, bulk, sweeps
from .changes import write_fleet_changes
from .record_models import write_models
from .sample_rows import write_samples
from .watches import write_watches


class LeaseLost(Exception):
    """Another holder has the pool: nothing of this pass is written, and nothing is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One pass of one pool under one generation."""

    lease: Lease
    installation: str
    holder: str
    generation: int
    now: datetime
    unbroken_since: datetime
    started: float
    """time.monotonic() at the pass's begin."""


def record(turn: Turn, built: Built, held: Held) -> list[Action]:
    """Everything of the pass; the actions that are to be done now, oldest first. Raises `LeaseLost`.

    Where nothing is to be done the lease is given back in the same breath."""
    plan = held.plan
    after = {**lease_after(turn, built), **({"holder": ""} if is_quiet(built, plan) else {})}
    with transaction.atomic():
        if not leases.still_mine(turn.lease.id, turn.holder, turn.generation, **after):
            raise LeaseLost
        touched = write_fleet_changes(built, turn)
        decisions = write_decisions(turn, built, plan, held.news)
        actions = write_actions(turn, built, plan, decisions)
        sweeps.write(built, held, actions)
        write_withheld(turn, built, held, decisions)
        braking.write(turn, held)
        rested = (*built.rested, *backoff.rests(stuck(built, plan), built.rows, turn.now))
        backoff.write(rested, built.rows)
        backoff.clear(built.observed, built.rows, rested, turn.now)
        write_models(turn, built, plan, decisions, touched)
        write_watches(turn, built, plan, actions)
        write_samples(turn, built, plan)
        write_pass(turn, built, plan, actions)
    return [action for action in actions if action.state == Action.State.PENDING]


def lease_after(turn: Turn, built: Built) -> dict[str, Any]:
    """What the pass leaves in the lease. A pool that nobody has written yet is this installation's from here on."""
    return {
        "last_pass_at": turn.now,
        # hosts that cannot be heard are not watched
        "unbroken_since": turn.now if built.observed is None else turn.unbroken_since,
        "installation": turn.lease.installation or turn.installation,
        "seen_generation": built.waits.seen_generation,
        "take_over_needed": built.waits.sentences,
    }


def is_quiet(built: Built, plan: Plan) -> bool:
    """Nothing to do, and nothing to ask for again."""
    return all(action.advice for action in plan.actions) and not (
        built.observed and any(p.intent for p in built.observed.present)
    )


def stuck(built: Built, plan: Plan) -> Iterable[Failure]:
    """A replica that did not come up in time makes its profile back off on its node."""
    present = {p.name: p for p in built.observed.present} if built.observed else {}
    for action in plan.actions:
        if action.reason == "start_timeout" and not action.advice and action.replica in present:
            found = present[action.replica]
            for node in found.nodes:
                yield Failure(
                    model=found.model, profile=found.profile, node=node, message="it did not come up in time", failed_start=True
                )


def write_decisions(turn: Turn, built: Built, plan: Plan, news: frozenset[str]) -> Mapping[str, int]:
    """Model → id of its decision's row: a new one where outcome, reason or counts changed, something is done or the brake
    withholds something else (`news`), else the last one's `seen_until` moves."""
    acting = {action.model for action in plan.actions if not action.advice}
    kept: dict[str, int] = {}
    fresh: list[Decision] = []
    for planned in plan.decisions:
        row = built.rows.models[planned.model]
        new = new_decision(turn, row, planned, is_advice=row.mode in {"advise", "add_only"} and planned.model not in acting)
        if row.decision and planned.model not in acting | news and same(row.decision, new):
            kept[planned.model] = row.decision.id
        else:
            fresh.append(new)
    if kept:
        Decision.objects.filter(pk__in=kept.values()).update(seen_until=turn.now)
    return {**kept, **insert_decisions(turn, fresh)}


def insert_decisions(turn: Turn, fresh: list[Decision]) -> dict[str, int]:
    """Model → id of its row. The lease lets each generation write once, so that its rows are found by it."""
    bulk.insert(fresh)
    written = Decision.objects.filter(pool_id=turn.lease.pool_id, seen_until=turn.now, generation=turn.generation, at=turn.now)
    return dict(written.order_by().values_list("model__name", "pk")) if fresh else {}


def new_decision(turn: Turn, row: ModelRow, planned: PlannedDecision, *, is_advice: bool) -> Decision:
    return Decision(
        pool_id=turn.lease.pool_id,
        model_id=row.id,
        at=turn.now,
        seen_until=turn.now,
        outcome=planned.outcome,
        reason=planned.reason,
        count=planned.count,
        is_advice=is_advice and planned.outcome != "hold",
        numbers={
            "demand_low": planned.demand_low,
            "demand_high": planned.demand_high,
            "capacity_ready": planned.capacity_ready,
            "capacity_starting": planned.capacity_starting,
            "adds_above": planned.adds_above,
            "removes_below": planned.removes_below,
        },
        limited_by=[{"kind": stop.kind, **stop.facts} for stop in planned.limited_by],
        why=planned.why,
        generation=turn.generation,
    )


COUNTS = ("capacity_ready", "capacity_starting", "adds_above", "removes_below")


def same(last: DecisionRow, new: Decision) -> bool:
    """Demand alone moves all the time and makes no new row; what it is judged against does."""
    if (last.outcome, last.reason, last.count, last.is_advice) != (new.outcome, new.reason, new.count, new.is_advice):
        return False
    return all(last.numbers.get(key) == new.numbers[key] for key in COUNTS)


def write_actions(turn: Turn, built: Built, plan: Plan, decisions: Mapping[str, int]) -> list[Action]:
    """Each action as pending (or as advice), and each start's replica, before anything is done.

    Advice that stands unchanged from pass to pass is written with the decision that it came with, not again."""
    last = {name: row.decision.id if row.decision else None for name, row in built.rows.models.items()}
    actions, starts = [], []
    for planned in plan.actions:
        if planned.advice and decisions[planned.model] == last[planned.model]:
            continue
        row = built.rows.models[planned.model]
        name = planned.replica or new_name(planned.model)
        actions.append(new_action(turn, row, planned, name, decisions[planned.model]))
        if planned.op == "start" and not planned.advice:
            starts.append(new_replica(turn, built, planned, name))
    bulk.insert(starts)
    bulk.insert(actions)
    write_intents(turn, [action for action in actions if action.state == Action.State.PENDING and action.op != "start"])
    return actions


def write_withheld(turn: Turn, built: Built, held: Held, decisions: Mapping[str, int]) -> None:
    """What the brake withholds, once while it stands unchanged; what of a model stood before is over."""
    if not held.news:
        return
    models = [built.rows.models[name].id for name in held.news if name in built.rows.models]
    before = Action.objects.filter(model_id__in=models, state=Action.State.WITHHELD, resolved_at=None)
    before.update(resolved_at=turn.now)
    actions = []
    for found in held.withheld:
        planned = found.action
        if planned.model in held.news:
            row = built.rows.models[planned.model]
            action = new_action(turn, row, planned, planned.replica or "", decisions[planned.model])
            action.state, action.message = Action.State.WITHHELD, found.why
            actions.append(action)
    bulk.insert(actions)


def new_action(turn: Turn, row: ModelRow, planned: PlannedAction, name: str, decision: int) -> Action:
    return Action(
        pool_id=turn.lease.pool_id,
        model_id=row.id,
        decision_id=decision,
        op=planned.op,
        replica_name="" if planned.op == "start" and planned.advice else name,
        profile_name=planned.profile,
        nodes=list(planned.nodes),
        reason=planned.reason,
        for_model=planned.returned_for or "",
        state=Action.State.ADVICE if planned.advice else Action.State.PENDING,
        generation=turn.generation,
        created_at=turn.now,
    )


def new_replica(turn: Turn, built: Built, planned: PlannedAction, name: str) -> Replica:
    profile = built.rows.profiles[planned.model, planned.profile]
    return Replica(
        name=name,
        pool_id=turn.lease.pool_id,
        model_id=built.rows.models[planned.model].id,
        profile_id=profile.id,
        nodes=list(planned.nodes),
        units=profile.units,
        state=Replica.State.STARTING,
        since=turn.now,
        created_at=turn.now,
        generation=turn.generation,
        fingerprint=run_print(profile, profile.model),
        intent="start",
        intent_at=turn.now,
    )


def write_intents(turn: Turn, actions: Iterable[Action]) -> None:
    """What is asked of replicas that exist, by kind: few queries, however many replicas."""

    def key(action: Action) -> tuple[str, str, str]:
        return action.op, action.reason, action.for_model

    for (op, reason, for_model), group in groupby(sorted(actions, key=key), key=key):
        names = [action.replica_name for action in group]
        draining = op in {"drain", "cancel"}
        Replica.objects.filter(name__in=names, gone_at__isnull=True).update(
            intent=op,
            intent_at=turn.now,
            drain_reason=reason if draining else "",
            drained_for=for_model if draining else "",
            **({"state": Replica.State.DRAINING, "since": turn.now} if draining else {}),
        )
        superseded = Action.objects.filter(replica_name__in=names, state__in=[Action.State.PENDING, Action.State.SENT])
        superseded.filter(created_at__lt=turn.now).update(
            state=Action.State.DROPPED, resolved_at=turn.now, message=f"overtaken by a {op}"
        )


def write_pass(turn: Turn, built: Built, plan: Plan, actions: list[Action]) -> None:
    problems = [{"code": p.code, "subject": p.subject, "detail": p.detail} for p in plan.problems]
    Pass.objects.create(
        pool_id=turn.lease.pool_id,
        at=turn.now,
        seconds=time.monotonic() - turn.started,
        generation=turn.generation,
        actions=sum(1 for action in actions if action.state == Action.State.PENDING),
        problems=[*built.problems, *problems],
        views=dict(built.views),
    )
