"""How much a manager may hand out: a limit below his scope is within that scope's own, and the guarantees that it funds add up
to no more than its own. An admin is only warned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.core.exceptions import ValidationError

from ..models import CapacityQuota, Scope, User
from ..querysets import subtree, with_ancestors
from .authority import authority_of
from .limits import funding_parents, paths_above
from .rows import Findings, actor_of, delete_rule_for, rule_for

Share = tuple[int, int, str]
"""(managed scope, pool, class)."""


@rule_for(CapacityQuota)
def keep_within_ones_own_limit(quota: CapacityQuota, stored: CapacityQuota | None, findings: Findings) -> None:
    if quota.limit is None or not _moved(quota, stored, "limit"):
        return
    beyond = [_beyond_limit(node, quota) for node in _nodes_over(quota)]
    # who manages several of the scopes above acts by the widest
    if beyond and all(beyond):
        findings.refuse("limit", beyond[0])


@rule_for(CapacityQuota)
def keep_within_ones_own_guarantee(quota: CapacityQuota, stored: CapacityQuota | None, findings: Findings) -> None:
    nodes = _nodes_over(quota)
    if not nodes:
        return
    if not _is_funded_from(nodes, quota.scope_id):
        _leave_to_those_who_fund(quota, stored, findings)
        return
    beyond = [_beyond_guarantee(node, quota, quota.guarantee) for node in nodes]
    if all(beyond):
        findings.refuse("guarantee", beyond[0])


@delete_rule_for(CapacityQuota)
def keep_within_ones_own_guarantee_without_it(quota: CapacityQuota, findings: Findings) -> None:
    """Where a scope states none, those that it funds count."""
    beyond = [_beyond_guarantee(node, quota, None) for node in _nodes_over(quota)]
    if beyond and all(beyond):
        findings.refuse("__all__", beyond[0])


def _nodes_over(quota: CapacityQuota) -> list[int]:
    """The scopes by which the actor manages this row's; empty where he is free, or where the scope is only being made."""
    authority = authority_of(actor_of(quota))
    return authority.over(quota.scope_id) if authority else []


def _moved(quota: CapacityQuota, stored: CapacityQuota | None, field: str) -> bool:
    fields = ("scope_id", "pool_id", "target", field)
    return stored is None or any(getattr(quota, name) != getattr(stored, name) for name in fields)


def _beyond_limit(node: int, quota: CapacityQuota) -> str:
    """Why the limit is beyond the effective one of the managed scope; empty where it is not."""
    rows = CapacityQuota.objects.filter(
        scope_id__in=with_ancestors([node]), pool_id=quota.pool_id, target__in=paths_above(quota.target), limit__lt=quota.limit
    )
    least = rows.select_related("scope").order_by("limit", "scope__name").first()
    if least is None:
        return ""
    return f"{_name(node)} has at most {least.limit} of {least.target} (the limit of {least.scope}): {quota.limit} is beyond it."


def _beyond_guarantee(node: int, quota: CapacityQuota, guarantee: int | None) -> str:
    place = (quota.pool_id, quota.target)
    before = _stated(node, *place)
    edited = {key: value for key, value in before.items() if key != quota.scope_id}
    after = edited if guarantee is None else {**edited, quota.scope_id: guarantee}
    return _overrun((node, *place), handed_out(node, before), handed_out(node, after))


def _overrun(share: Share, before: int, after: int) -> str:
    """Why an edit hands out more than the scope has; empty where it does not, or where it was so already."""
    node, pool, target = share
    own = CapacityQuota.objects.filter(scope=node, pool=pool, target=target).values_list("guarantee", flat=True).first()
    if after <= before or after <= (own or 0):
        return ""
    if own is None:
        return f"{_name(node)} has no guarantee on {target} of its own to hand out: an admin states one first."
    return f"The guarantees on {target} that come through {_name(node)} would add up to {after}, beyond its own {own}."


def _leave_to_those_who_fund(quota: CapacityQuota, stored: CapacityQuota | None, findings: Findings) -> None:
    """Its guarantee, its weight among others and what it keeps from them concern scopes that are not his."""
    usual = stored or CapacityQuota()
    for field in ("guarantee", "weight", "lend"):
        if getattr(quota, field) != getattr(usual, field):
            findings.refuse(field, f"What {quota.scope} is guaranteed comes through a scope that you do not manage.")


def _is_funded_from(nodes: Iterable[int], scope: int) -> bool:
    above = _chain(scope, funding_parents(with_ancestors([scope])))
    return any(node in above for node in nodes)


# --- what is handed out -------------------------------------------------------------------------------------------
def handed_out(node: int, stated: Mapping[int, int]) -> int:
    """Units that `node` is asked for by those that it funds. `stated`: scope → guarantee; one that states none counts as what it
    funds itself."""
    parents = funding_parents(with_ancestors(stated))
    return sum(units for scope, units in stated.items() if _asks(node, scope, parents, stated))


def _asks(node: int, scope: int, parents: Mapping[int, int], stated: Mapping[int, int]) -> bool:
    """Whether the chain of funding parents leads to `node` with no other statement before it."""
    above = _chain(scope, parents)
    nearest = next((place for place in above if place in stated or place == node), None)
    return nearest == node


def _chain(scope: int, parents: Mapping[int, int]) -> list[int]:
    """The funding parents from the nearest on; ends on stored cycles."""
    found: list[int] = []
    at = parents.get(scope)
    while at is not None and at != scope and at not in found:
        found.append(at)
        at = parents.get(at)
    return found


def _stated(node: int, pool: int, target: str) -> dict[int, int]:
    rows = CapacityQuota.objects.filter(
        scope_id__in=subtree([node]), pool_id=pool, target=target, guarantee__isnull=False
    ).exclude(scope_id=node)
    return dict(rows.values_list("scope_id", "guarantee"))


def _name(scope: int) -> str:
    return str(Scope.objects.get(pk=scope))


# --- moves --------------------------------------------------------------------------------------------------------
class Balance:
    """What each managed scope hands out, before a move and after it. Free actors have none."""

    def __init__(self, scope: Scope, actor: User | None) -> None:
        self.scope, self.actor = scope, actor
        authority = authority_of(actor) if scope.pk else None
        self.before = self._sums(set(authority.reach)) if authority else {}

    def _sums(self, nodes: set[int]) -> dict[Share, int]:
        rows = CapacityQuota.objects.filter(scope_id__in=subtree([self.scope.pk]), guarantee__isnull=False)
        places = set(rows.order_by().values_list("pool_id", "target"))
        return {(node, *place): handed_out(node, _stated(node, *place)) for node in nodes for place in places}

    def check(self) -> None:
        """Refuses a move after which a scope would hand out more than its own guarantee."""
        authority = authority_of(self.actor) if self.before else None
        nodes = authority.over(self.scope.pk) if authority else []
        after = self._sums(set(nodes))
        for place in {share[1:] for share in after}:
            shares: list[Any] = [(node, *place) for node in nodes]
            beyond = [_overrun(share, self.before[share], after[share]) for share in shares]
            if all(beyond):
                raise ValidationError({"parents": beyond[0]})
