"""Sends what was recorded, outside of any transaction, and asks again for what earlier passes asked and nobody has seen done."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from .models import Action, Replica
from .ports import FleetDriver, Op, Order, Outcome
from .recording.record import Turn
from .rows import ProfileRow
from .snapshot import Built

OPEN = (Action.State.PENDING, Action.State.SENT)


def act(driver: FleetDriver, turn: Turn, built: Built, actions: Iterable[Action]) -> int:
    """How many orders were accepted. A failure is written to its action and stops no other."""
    orders = [order for order in (*asked_again(turn, built), *new_orders(turn, built, actions)) if is_ours(built, order.replica)]
    outcomes = {order.replica: (order, driver.apply(order)) for order in orders}
    write_outcomes(outcomes, turn.now)
    return sum(1 for _, outcome in outcomes.values() if outcome.kind == "accepted")


def is_ours(built: Built, replica: str) -> bool:
    """What a person registered is never ordered about, whatever stands in its row: somebody else runs it."""
    row = built.rows.replicas.get(replica)
    return row is None or not row.is_registered


def asked_again(turn: Turn, built: Built) -> list[Order]:
    """What a crash, a lost task or a host that was away has left undone; `ensure` twice is one replica.

    A model that was paused or only advised since then asks for nothing more, but for what a sweep has or had for itself."""
    if built.observed is None:
        return []
    orders = []
    for present in built.observed.present:
        profile = built.rows.profiles.get((present.model, present.profile))
        row = built.rows.replicas.get(present.name)
        of_a_sweep = row is not None and (row.under_test or row.give_back)
        acts = profile and (of_a_sweep or built.rows.models[present.model].mode in {"auto", "add_only"})
        if present.intent and acts and not present.is_silent:
            orders.append(order(turn, built, present.intent, present.name, profile, present.nodes))  # type: ignore[arg-type]
    return orders


def new_orders(turn: Turn, built: Built, actions: Iterable[Action]) -> list[Order]:
    names = {row.id: row.name for row in built.rows.models.values()}
    hosts = {present.name: present.nodes for present in (built.observed.present if built.observed else ())}
    orders = []
    for action in actions:
        profile = built.rows.profiles[names[action.model_id], action.profile_name]
        nodes = tuple(action.nodes) or hosts.get(action.replica_name, ())
        orders.append(order(turn, built, action.op, action.replica_name, profile, nodes))
    return orders


def order(turn: Turn, built: Built, op: str, replica: str, profile: ProfileRow, nodes: tuple[str, ...]) -> Order:
    settings, model = built.snapshot.settings, built.rows.models[profile.model]
    kind: Op = op  # type: ignore[assignment]
    return Order(
        op=kind,
        pool=turn.lease.pool.name,
        generation=turn.generation,
        replica=replica,
        model=profile.model,
        profile=profile.name,
        nodes=nodes,
        resource=profile.resource,
        units=profile.units,
        template=profile.template,
        parameters=profile.parameters,
        start_timeout_seconds=own_or(profile.start_timeout_seconds, settings.start_timeout_seconds),
        drain_timeout_seconds=own_or(model.drain_timeout_seconds, settings.drain_timeout_seconds),
        installation=turn.installation,
        taken_over_at_generation=turn.lease.taken_over_at_generation,
    )


def own_or(own: int | None, setting: int) -> int:
    """0 is a time of its own."""
    return setting if own is None else own


def write_outcomes(outcomes: dict[str, tuple[Order, Outcome]], now: datetime) -> None:
    accepted = [name for name, (_, outcome) in outcomes.items() if outcome.kind == "accepted"]
    pending = Action.objects.filter(state=Action.State.PENDING)
    if accepted:
        pending.filter(replica_name__in=accepted).update(state=Action.State.SENT, sent_at=now)
    for name, (order, outcome) in outcomes.items():
        if outcome.kind != "accepted":
            write_failure(name, order, outcome, now)


def write_failure(name: str, order: Order, outcome: Outcome, now: datetime) -> None:
    """What may be tried again stays open for the next pass. A refused start is no replica; a refused drain is none."""
    mine = Action.objects.filter(replica_name=name, op=order.op, state__in=OPEN)
    if outcome.kind == "failed" and outcome.retryable:
        mine.update(message=outcome.message[:2000])
        return
    mine.update(state=Action.State.FAILED, resolved_at=now, message=outcome.message[:2000])
    replica = Replica.objects.filter(name=name, gone_at__isnull=True, intent=order.op)
    if order.op == "start":
        replica.update(state=Replica.State.GONE, gone_at=now, since=now, intent="", message=outcome.message[:2000])
    else:
        replica.update(intent="")
