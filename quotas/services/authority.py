"""What a manager may write: scopes below his own node, with their quotas and memberships. Never the node itself, what stands
above it, or his own role.

Admins are free. Operators are stopped at the doors (pages, API, admin): what they do to models may carry quotas along.
What a person may not do is `PermissionDenied` with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError

from ..models import CapacityQuota, Membership, Scope, ScopeEdge, User
from ..querysets import below, managed_nodes, subtree
from .rows import Findings, actor_of, delete_rule_for, rule_for

NOT_BELOW = "Managers edit what lies below their own scope; an admin does the rest."
SHARED = "{scope} also stands under a scope that you do not manage: an admin moves or removes it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """The scopes that a person manages, and for each the ids of those below it."""

    reach: dict[int, frozenset[int]]

    def over(self, scope: int | None) -> list[int]:
        """The managed scopes that this one lies below."""
        return [node for node, lower in self.reach.items() if scope in lower]

    @property
    def parents(self) -> set[int]:
        """Under which a scope may be put."""
        return set(self.reach).union(*self.reach.values())


def authority_of(actor: User | None) -> Authority | None:
    """None: he is free."""
    if actor is None or actor.is_superuser:
        return None
    nodes = managed_nodes(actor)
    if not nodes and actor.sees_everything:
        return None
    return Authority(reach={node: frozenset(below(node)) for node in nodes})


def editable_by(actor: Any) -> Callable[[int], bool]:
    """Whether a scope, its quotas and its roles are his to edit, asked of any number at the price of one."""
    authority = authority_of(actor) if actor.edits_tenancy else Authority(reach={})
    return lambda scope: authority is None or bool(authority.over(scope))


def may_edit_below(actor: Any, scope: int) -> bool:
    """Whether this scope, its quotas and its roles are his to edit."""
    return editable_by(actor)(scope)


def require_below(row: Any, *scopes: int | None) -> Authority | None:
    """The actor's authority, which reaches each of these scopes."""
    authority = authority_of(actor_of(row))
    if authority is not None and not all(authority.over(scope) for scope in scopes):
        raise PermissionDenied(NOT_BELOW)
    return authority


# --- saves --------------------------------------------------------------------------------------------------------
@rule_for(Scope)
def edit_scopes_below(scope: Scope, stored: Scope | None, findings: Findings) -> None:
    """Where a new one may stand its parents say: `placed`."""
    if stored is not None:
        require_below(scope, scope.pk)
    elif (authority := authority_of(actor_of(scope))) is not None and not authority.reach:
        raise PermissionDenied(NOT_BELOW)


@rule_for(CapacityQuota, Membership)
def edit_what_belongs_below(row: Any, stored: Any | None, findings: Findings) -> None:
    """Before and after."""
    places = [row.scope_id] if stored is None else [row.scope_id, stored.scope_id]
    # of a scope that the same form makes the parents say it
    require_below(row, *(place for place in places if place is not None))


@rule_for(Membership)
def leave_ones_own_role(row: Membership, stored: Membership | None, findings: Findings) -> None:
    keep_from_oneself(row, row.user_id, stored.user_id if stored else None)


def keep_from_oneself(row: Membership, *users: int | None) -> None:
    actor = actor_of(row)
    if authority_of(actor) is not None and actor is not None and actor.pk in users:
        raise PermissionDenied("Your own role is changed by somebody else.")


# --- deletes ------------------------------------------------------------------------------------------------------
@delete_rule_for(Scope)
def delete_scopes_below(scope: Scope, findings: Findings) -> None:
    authority = require_below(scope, scope.pk)
    if authority is not None and any(edge.parent_id not in authority.parents for edge in scope.parent_edges.all()):
        raise PermissionDenied(SHARED.format(scope=scope))


@delete_rule_for(CapacityQuota)
def delete_quotas_below(row: CapacityQuota, findings: Findings) -> None:
    require_below(row, row.scope_id)


@delete_rule_for(Membership)
def delete_memberships_below(row: Membership, findings: Findings) -> None:
    require_below(row, row.scope_id)
    keep_from_oneself(row, row.user_id)


# --- places in the graph ------------------------------------------------------------------------------------------
def placed(
    scope: Scope, parents: Sequence[Scope] | None, funding: Scope | None, actor: User | None
) -> tuple[Sequence[Scope] | None, Scope | None]:
    """The parents that a scope gets, and which one funds it. Those that a manager does not see stay as they are.

    He moves a scope within what is his: all its parents before and after are scopes that he manages or lie below one."""
    authority = authority_of(actor)
    if authority is None or actor is None:
        return parents, funding
    edges = list(scope.parent_edges.select_related("parent")) if scope.pk else []
    if parents is None and edges:
        return parents, funding
    whole, funding = _with_unseen(parents or (), funding, edges, actor)
    if _is_as_stored(whole, funding, edges):
        return whole, funding
    if any(edge.parent_id not in authority.parents for edge in edges):
        raise PermissionDenied(SHARED.format(scope=scope))
    if any(parent.pk not in authority.parents for parent in whole):
        raise PermissionDenied("Managers put scopes under their own scope and those below it.")
    if not whole:
        raise ValidationError({"parents": "Name a parent: only admins make scopes that stand under none."})
    return whole, funding


def _with_unseen(
    parents: Sequence[Scope], funding: Scope | None, edges: Sequence[ScopeEdge], actor: User
) -> tuple[list[Scope], Scope | None]:
    """What a person sent back of what he saw, with the rest at its places."""
    seen = set(subtree(actor.memberships.values_list("scope_id", flat=True)))
    whole = list(parents)
    for place, edge in enumerate(edges):
        if edge.parent_id not in seen:
            whole.insert(place, edge.parent)
            funding = edge.parent if edge.is_funding and funding is None else funding
    return whole, funding


def _is_as_stored(parents: Sequence[Scope], funding: Scope | None, edges: Sequence[ScopeEdge]) -> bool:
    marked = next((edge.parent_id for edge in edges if edge.is_funding), None)
    order = [edge.parent_id for edge in edges]
    return bool(edges) and [parent.pk for parent in parents] == order and (funding.pk if funding else None) == marked
