"""What people do to the catalogue."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError

from quotas.models import CapacityQuota, Pool, User
from quotas.services import rows

from ..models import LanguageModel, Lease, Node, PoolSettings


def save(row: Any, *, actor: User | None, reason: str = "") -> list[str]:
    """Checks and writes a pool, its settings, a node, model, profile, measurement or SLO; returns warnings.

    An unchanged row writes nothing. A new pool gets settings and a lease. A model's quotas follow its new name.
    """
    with rows.exclusive():
        rows.sign(row, actor, reason)
        stored = rows.stored_row(row)
        warnings = rows.check(row)
        rows.write(row, actor=actor, reason=reason)
        if isinstance(row, Pool) and stored is None:
            _furnish(row, actor, reason)
        if isinstance(row, LanguageModel) and stored is not None and stored.name != row.name:
            _rename_quotas(stored.name, row.name, actor, reason)
    return warnings


def delete(row: Any, *, actor: User | None, reason: str = "") -> None:
    """Deletes a row of the catalogue and its history of passes; refused, with what to do, while replicas of it exist."""
    with rows.exclusive():
        rows.check_delete(row)
        if isinstance(row, LanguageModel):
            for quota in CapacityQuota.objects.filter(target=f"model:{row.name}"):
                rows.erase(quota, actor=actor, reason=reason)
        rows.erase(row, actor=actor, reason=reason)


def pool_create(name: str, *, actor: User | None, reason: str = "", is_example: bool = False) -> Pool:
    """A pool with settings (reclaim off) and a lease."""
    pool = Pool(name=name, is_example=is_example)
    save(pool, actor=actor, reason=reason)
    return pool


def _furnish(pool: Pool, actor: User | None, reason: str) -> None:
    rows.save(PoolSettings(pool=pool, reclaim=False), actor=actor, reason=reason)
    Lease.objects.create(pool=pool)


def _rename_quotas(before: str, after: str, actor: User | None, reason: str) -> None:
    for quota in CapacityQuota.objects.filter(target=f"model:{before}"):
        quota.target = f"model:{after}"
        rows.write(quota, actor=actor, reason=reason or "the model was renamed")


def model_wake(model: LanguageModel, *, actor: User | None, now: datetime) -> None:
    """Asks for a replica of a model that sleeps; the next pass starts one. No history: a gateway may ask each second."""
    if model.max_replicas == 0:
        raise ValidationError({"max_replicas": f"{model} is off (max_replicas 0): raise it to wake the model."})
    LanguageModel.objects.filter(pk=model.pk).update(woken_at=now)
    model.woken_at = now


def model_mode(model: LanguageModel, mode: str, *, actor: User | None, reason: str) -> list[str]:
    """Sets auto, add_only, advise or paused."""
    model.mode = mode
    return save(model, actor=actor, reason=reason)


def node_cordon(node: Node, schedulable: bool, *, actor: User | None, reason: str) -> list[str]:
    """Cordons a node (nothing new, what runs is moved away) or opens it again."""
    node.schedulable = schedulable
    return save(node, actor=actor, reason=reason)
