"""What people do to the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.core.exceptions import ValidationError
from django.utils import timezone

from quotas.models import CapacityQuota, Pool, User
from quotas.services import check, rows, save
from quotas.services.rows import LONGEST_REASON

from ..models import Brake, LanguageModel, Lease, Node, PoolSettings, Replica
from .rules import on_node


def pool_create(name: str, *, actor: User | None, reason: str = "", is_example: bool = False) -> Pool:
    """A pool, its settings, its lease and its brake."""
    pool = Pool(name=name, is_example=is_example)
    save(pool, actor=actor, reason=reason)
    return pool


@rows.after_save_of(Pool)
def furnish(pool: Pool, stored: Pool | None, actor: User | None, reason: str) -> None:
    """A new pool gets settings (reclaim off), a lease and a brake."""
    if stored is None:
        save(PoolSettings(pool=pool, reclaim=False), actor=actor, reason=reason)
        Lease.objects.create(pool=pool)
        Brake.objects.create(pool=pool)


@rows.after_save_of(LanguageModel)
def take_quotas_along(model: LanguageModel, stored: LanguageModel | None, actor: User | None, reason: str) -> None:
    """Quotas name models: they follow a new name."""
    if stored is None or stored.name == model.name:
        return
    for quota in CapacityQuota.objects.filter(target=f"model:{stored.name}"):
        quota.target = f"model:{model.name}"
        rows.write(quota, actor=actor, reason=reason or "the model was renamed")


@rows.before_delete_of(LanguageModel)
def drop_quotas(model: LanguageModel, actor: User | None, reason: str) -> None:
    for quota in CapacityQuota.objects.filter(target=f"model:{model.name}"):
        rows.erase(quota, actor=actor, reason=reason)


@rows.before_delete_of(Node)
def give_up_what_ran_there(node: Node, actor: User | None, reason: str) -> None:
    """A lost host is deleted with what it ran: those were replaced long ago, and nobody waits for them any more."""
    now = timezone.now()
    gone = {"state": Replica.State.GONE, "gone_at": now, "since": now, "intent": "", "url": ""}
    names = [row.name for row in on_node(node)]
    Replica.objects.filter(name__in=names).update(**gone, message=f"{node}, its host, was lost and is deleted")


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


def node_resources(node: Node, units: Mapping[str, int], *, actor: User | None, reason: str) -> list[str]:
    """Types in a node's GPU classes, as they were read of its hardware; what it has of other classes stays.

    A node that is not written down yet is made. The history's reason says the units, which it keeps in no column."""
    type_in(node, units)
    said = ", ".join(f"{count} {name}" for name, count in sorted(units.items())) or "no GPU"
    return save(node, actor=actor, reason=f"{reason} ({said})"[:LONGEST_REASON])


def node_resources_preview(node: Node, units: Mapping[str, int]) -> list[str]:
    """What `node_resources` would warn of; the row holds what it would write. Writes nothing."""
    type_in(node, units)
    return check(node)


def type_in(node: Node, units: Mapping[str, int]) -> None:
    others = {name: count for name, count in node.resources.items() if not name.startswith("gpu/")}
    node.resources = {**others, **units}
