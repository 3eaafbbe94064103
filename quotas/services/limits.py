"""Edits of quotas, and what is said about numbers that do not fit those around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.utils import timezone

from ..models import CapacityQuota, Scope, ScopeEdge, User
from ..querysets import with_ancestors
from . import rows
from .rows import Findings, actor_of, rule_for


def quota_save(quota: CapacityQuota, *, actor: User | None, reason: str = "") -> list[str]:
    """Checks and writes a quota; notes when its limit was lowered. Returns warnings, with the numbers."""
    return rows.save(quota, actor=actor, reason=reason)


def quota_delete(quota: CapacityQuota, *, actor: User | None, reason: str = "") -> None:
    rows.delete(quota, actor=actor, reason=reason)


@rule_for(CapacityQuota)
def note_lowered_limit(quota: CapacityQuota, stored: CapacityQuota | None, findings: Findings) -> None:
    """`lowered_at` starts the grace in which nothing is drained down to a lower limit."""
    if quota.limit is None:
        quota.lowered_at = None
        return
    before = stored.limit if stored is not None and _same_place(quota, stored) else None
    if before is None or quota.limit < before:
        quota.lowered_at = timezone.now()
    elif stored is not None:
        quota.lowered_at = stored.lowered_at


def _same_place(quota: CapacityQuota, stored: CapacityQuota) -> bool:
    return (quota.scope_id, quota.pool_id, quota.target) == (stored.scope_id, stored.pool_id, stored.target)


@rule_for(CapacityQuota)
def warn_of_lower_limits_above(quota: CapacityQuota, stored: CapacityQuota | None, findings: Findings) -> None:
    if quota.guarantee is None or quota.scope_id is None:
        return
    paths = paths_above(quota.target)
    limits = CapacityQuota.objects.filter(
        scope_id__in=with_ancestors([quota.scope_id]), pool_id=quota.pool_id, target__in=paths, limit__lt=quota.guarantee
    )
    for row in limits.select_related("scope").order_by("limit", "scope__name")[:3]:
        findings.warn(
            f"{row.scope} has a limit of {row.limit} on {row.target}: the guarantee of {quota.guarantee} is cut to that."
        )


@rule_for(CapacityQuota)
def warn_of_children_beyond_parent(quota: CapacityQuota, stored: CapacityQuota | None, findings: Findings) -> None:
    """Both ways: this row as the parent of others, and as one of its funding parent's children."""
    if quota.guarantee is None or quota.scope_id is None:
        return
    _warn_if_beyond(quota.scope_id, quota, findings)
    parent = funding_parents([quota.scope_id]).get(quota.scope_id)
    actor = actor_of(quota)
    # what others are guaranteed beside it is told to those who see them
    if parent is not None and (actor is None or Scope.objects.visible_to(actor).filter(pk=parent).exists()):
        _warn_if_beyond(parent, quota, findings)


def _warn_if_beyond(parent: int, edited: CapacityQuota, findings: Findings) -> None:
    children = _funded_by(parent)
    guarantees = _guarantees([parent, *children], edited)
    own = guarantees.get(parent)
    total = sum(guarantees.get(child) or 0 for child in children)
    if own is not None and total > own:
        name = edited.scope.name if parent == edited.scope_id else "the funding parent"
        findings.warn(
            f"Guarantees on {edited.target} of the scopes that {name} funds add up to {total}, beyond its own {own}: "
            "they are scaled."
        )


def _guarantees(scopes: Sequence[int], edited: CapacityQuota) -> dict[int, int | None]:
    """Scope → guarantee on the edited row's class, as it will be after the edit."""
    others = CapacityQuota.objects.filter(scope_id__in=scopes, pool_id=edited.pool_id, target=edited.target)
    found = dict(others.exclude(pk=edited.pk).values_list("scope_id", "guarantee"))
    return found | ({edited.scope_id: edited.guarantee} if edited.scope_id in scopes else {})


def _funded_by(parent: int) -> list[int]:
    children = ScopeEdge.objects.filter(parent_id=parent).values_list("child_id", flat=True)
    return [child for child, funding in funding_parents(children).items() if funding == parent]


def funding_parents(children: Iterable[int]) -> dict[int, int]:
    """Child → the parent marked as funding, else the first."""
    edges = ScopeEdge.objects.filter(child_id__in=children).order_by("-is_funding", "position", "id")
    found: dict[int, int] = {}
    for child, parent in edges.values_list("child_id", "parent_id"):
        found.setdefault(child, parent)
    return found


def paths_above(target: str) -> list[str]:
    """`gpu/h100` → `gpu`, `gpu/h100`."""
    if target.startswith("model:"):
        return [target]
    parts = target.split("/")
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]
