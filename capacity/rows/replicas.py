"""The replicas of a pool: the one kind of row of which there are tens of thousands.

Times and lists come as the database's own text: a field's converters cost more for each row than all else that is done to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from django.db.models import TextField
from django.db.models.functions import Cast

from ..models import Replica
from .types import ProfileRow, ReplicaRow

PLAIN = ("id", "name", "profile_id", "state", "url", "removable", "drained_for", "drain_reason", "intent")
AS_TEXT = ("nodes", "since", "intent_at", "ready_at", "seen_at")


def load_replicas(pool_id: int, profiles: Mapping[tuple[str, str], ProfileRow]) -> dict[str, ReplicaRow]:
    """Those that are not gone, by name. `profiles`: all of the pool."""
    owners = {row.id: key for key, row in profiles.items()}
    places: dict[str, tuple[str, ...]] = {}
    texts = {f"{name}_text": Cast(name, TextField()) for name in AS_TEXT}
    found = Replica.objects.filter(pool_id=pool_id, gone_at__isnull=True).order_by().annotate(**texts)
    replicas = {}
    for row in found.values_list(*PLAIN, *texts).iterator(5000):
        id_, name, profile_id, state, url, removable, drained_for, drain_reason, intent, *written = row
        nodes, since, intent_at, ready_at, seen_at = written
        if profile_id not in owners:
            continue
        if nodes not in places:
            places[nodes] = tuple(json.loads(nodes))
        model, profile = owners[profile_id]
        replicas[name] = ReplicaRow(
            id=id_,
            name=name,
            model=model,
            profile=profile,
            nodes=places[nodes],
            state=state,
            since=_instant(since),
            url=url,
            removable=removable,
            drained_for=drained_for,
            drain_reason=drain_reason,
            intent=intent,
            intent_at=_instant(intent_at) if intent_at else None,
            ready_at=_instant(ready_at) if ready_at else None,
            seen_at=_instant(seen_at) if seen_at else None,
        )
    return replicas


def _instant(text: str) -> datetime:
    """An instant as databases write it in UTC, with or without its zone."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
