"""The replicas of a pool: the one kind of row of which there are tens of thousands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Case, QuerySet, Value, When

from ..models import BenchRun, Replica
from .texts import Json, columns, instant
from .types import ProfileRow, ReplicaRow

AS_TEXT = ("nodes", "devices", "since", "intent_at", "ready_at", "seen_at")
PLAIN = (
    "id",
    "name",
    "profile_id",
    "state",
    "url",
    "removable",
    "is_registered",
    "drained_for",
    "drain_reason",
    "intent",
    "fingerprint",
    "under_test",
    "give_back",
)
FIELDS = (*PLAIN, *AS_TEXT)


def is_one_of(runs: QuerySet[Any], field: str, key: str = "pk") -> Case:
    """Whether `key` is what `field` names in one of the runs: looked up once, not for each row."""
    return Case(When(**{f"{key}__in": runs.order_by().values(field)}, then=Value(True)), default=Value(False))


def load_replicas(pool_id: int, profiles: Mapping[tuple[str, str], ProfileRow], now: datetime) -> dict[str, ReplicaRow]:
    """Those that are not gone, by name. `profiles`: all of the pool."""
    owners = {row.id: key for key, row in profiles.items()}
    lists = Json()
    found = Replica.objects.filter(pool_id=pool_id, gone_at__isnull=True).order_by()
    runs = BenchRun.objects
    found = found.annotate(under_test=is_one_of(runs.holding(now), "replica"), give_back=is_one_of(runs.giving_back(), "replica"))
    present = columns(found, FIELDS, AS_TEXT)
    replicas = {}
    for row in present.iterator(5000):
        id_, name, profile_id, state, url, removable, is_registered, drained_for, drain_reason, *others = row
        intent, print_, under_test, give_back, *written = others
        nodes, devices, since, intent_at, ready_at, seen_at = written
        if profile_id not in owners:
            continue
        model, profile = owners[profile_id]
        replicas[name] = ReplicaRow(
            id=id_,
            name=name,
            model=model,
            profile=profile,
            nodes=tuple(lists[nodes]),
            state=state,
            since=instant(since),
            url=url,
            removable=removable,
            is_registered=is_registered,
            devices=tuple(lists[devices]) if is_registered else (),
            drained_for=drained_for,
            drain_reason=drain_reason,
            intent=intent,
            fingerprint=print_,
            under_test=under_test,
            give_back=give_back,
            intent_at=instant(intent_at) if intent_at else None,
            ready_at=instant(ready_at) if ready_at else None,
            seen_at=instant(seen_at) if seen_at else None,
        )
    return replicas
