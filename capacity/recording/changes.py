"""Writes what the hosts reported into the replicas' rows: only what has changed, in a few queries whatever the fleet's size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ..models import Action, Node, Replica
from ..observation.observe import Gone, Present
from ..observation.sights import NodeSight
from ..rows import NodeRow, ReplicaRow
from ..snapshot import Built
from . import bulk

if TYPE_CHECKING:
    from .record import Turn

OPEN = (Action.State.PENDING, Action.State.SENT)


def write_fleet_changes(built: Built, turn: Turn) -> set[str]:
    """Writes all of them; the models whose replicas came, went or became ready."""
    if built.observed is None:
        return set()
    touched = write_gone(built, built.observed.gone, turn.now) | write_present(built, turn)
    write_lost(built, built.observed.lost, turn.now)
    write_nodes(built, turn.now)
    return touched


def write_gone(built: Built, gone: Sequence[Gone], now: datetime) -> set[str]:
    rows = []
    for ended in gone:
        row = built.rows.replicas[ended.name]
        rows.append(
            Replica(pk=row.id, state=Replica.State.GONE, since=now, gone_at=now, intent="", message=ended.message[:2000], url="")
        )
    bulk.update(rows, ["state", "since", "gone_at", "intent", "message", "url"])
    if rows:
        resolve_gone(gone, now)
    return {built.rows.replicas[ended.name].model for ended in gone}


def write_lost(built: Built, lost: Sequence[str], now: datetime) -> None:
    """What is left out of the plan and replaced is no longer ready either: no gateway is sent to a lost host."""
    rows = [built.rows.replicas[name] for name in lost]
    unready = [Replica(pk=row.id, state=Replica.State.UNREADY, since=now) for row in rows if row.state == Replica.State.READY]
    bulk.update(unready, ["state", "since"])


def resolve_gone(gone: Sequence[Gone], now: datetime) -> None:
    """Drains and cancels of what is gone are done; a start of it failed, with its last words."""
    unresolved = Action.objects.filter(state__in=OPEN)
    names = [ended.name for ended in gone]
    unresolved.filter(replica_name__in=names, op__in=["drain", "cancel"]).update(state=Action.State.DONE, resolved_at=now)
    words = {ended.name: ended.message[:2000] for ended in gone if ended.failed_start}
    failed = [
        Action(pk=pk, state=Action.State.FAILED, resolved_at=now, message=words[name])
        for pk, name in unresolved.filter(replica_name__in=words).values_list("pk", "replica_name")
    ]
    bulk.update(failed, ["state", "resolved_at", "message"])
    unresolved.filter(replica_name__in=names).update(state=Action.State.DROPPED, resolved_at=now)


def write_present(built: Built, turn: Turn) -> set[str]:
    assert built.observed is not None
    adopted, changed, watched, confirmed = [], [], [], []
    touched = set()
    for present in built.observed.present:
        row = built.rows.replicas.get(present.name)
        if row is None:
            if (present.model, present.profile) in built.rows.profiles:
                adopted.append(present)
                touched.add(present.model)
            continue
        if not differs(row, present):
            continue
        (watched if row.is_registered else changed).append(updated(row, present, turn.now))
        if row.intent and not present.intent:
            confirmed.append((row.name, row.intent))
        if present.state == "ready" and row.state != "ready":
            touched.add(row.model)
    bulk.update(changed, ["state", "since", "url", "devices", "intent", "ready_at", "seen_at"])
    write_registered(watched)
    adopt(built, adopted, turn)
    resolve_seen(confirmed, turn.now)
    return touched


def write_registered(watched: Iterable[Replica]) -> None:
    """Whoever forgets an engine while a pass is made has the last word. Few change in one pass: they answer, or they do not."""
    for row in watched:
        values = {"state": row.state, "since": row.since, "ready_at": row.ready_at, "seen_at": row.seen_at, "intent": ""}
        Replica.objects.filter(pk=row.pk, gone_at__isnull=True).update(**values)


def resolve_seen(confirmed: list[tuple[str, str]], now: datetime) -> None:
    """A start or an undrain is done once its host shows it; a drain or a cancel only when the replica is gone."""
    for op in ("start", "undrain"):
        names = [name for name, asked in confirmed if asked == op]
        if names:
            Action.objects.filter(replica_name__in=names, op=op, state__in=OPEN).update(state=Action.State.DONE, resolved_at=now)


def differs(row: ReplicaRow, present: Present) -> bool:
    if not present.reported:
        return False
    return (row.state, row.since, row.url, row.intent, row.seen_at is None) != (
        present.state,
        present.since,
        present.url,
        present.intent,
        False,
    )


def updated(row: ReplicaRow, present: Present, now: datetime) -> Replica:
    became_ready = present.state == "ready" and row.ready_at is None
    return Replica(
        pk=row.id,
        state=present.state,
        since=present.since,
        url=present.url,
        devices=list(present.devices),
        intent=present.intent,
        ready_at=present.since if became_ready else row.ready_at,
        seen_at=row.seen_at or now,
    )


ADOPTED = (
    "pool",
    "model",
    "profile",
    "nodes",
    "units",
    "state",
    "since",
    "url",
    "devices",
    "generation",
    "seen_at",
    "ready_at",
    "gone_at",
    "intent",
    "message",
)


def adopt(built: Built, replicas: list[Present], turn: Turn) -> None:
    """What runs and has no row: a restore lost it, or it was given up and came up after all. It is taken as it is."""
    if not replicas:
        return
    had = dict(Replica.objects.filter(name__in=[present.name for present in replicas]).values_list("name", "pk"))
    rows = [adopted(built, present, turn, had.get(present.name)) for present in replicas]
    bulk.update([row for row in rows if row.pk is not None], ADOPTED)
    bulk.insert([row for row in rows if row.pk is None])


def adopted(built: Built, present: Present, turn: Turn, pk: int | None) -> Replica:
    profile = built.rows.profiles[present.model, present.profile]
    return Replica(
        pk=pk,
        name=present.name,
        pool_id=turn.lease.pool_id,
        model_id=built.rows.models[present.model].id,
        profile_id=profile.id,
        nodes=list(present.nodes),
        units=profile.units,
        state=present.state,
        since=present.since,
        url=present.url,
        devices=list(present.devices),
        generation=present.generation,
        seen_at=turn.now,
        ready_at=present.since if present.state == "ready" else None,
        created_at=present.since,
    )


def write_nodes(built: Built, now: datetime) -> None:
    """What nodes offer and when they last reported: pages call a node silent by what stands here."""
    assert built.observed is not None
    changed = [
        observed_node(row, sight) for name, row in built.rows.nodes.items() if is_news(row, sight := built.observed.nodes[name])
    ]
    bulk.update(changed, ["resources", "foreign", "foreign_devices", "templates", "reported_at", "host_clock_at"])


def observed_node(row: NodeRow, sight: NodeSight) -> Node:
    return Node(
        pk=row.id,
        resources=dict(sight.resources),
        foreign=dict(sight.foreign),
        foreign_devices=dict(sight.foreign_devices),
        templates={name: dict(parameters) for name, parameters in sight.templates.items()},
        reported_at=sight.reported_at,
        host_clock_at=sight.host_clock_at,
    )


def is_news(row: NodeRow, sight: NodeSight) -> bool:
    return sight.reported_at is not None and (
        sight.reported_at != row.known.reported_at or dict(sight.resources) != dict(row.known.resources)
    )
