"""Edits of the graph of scopes. It stays without cycles, also when two edits would only together make one."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.exceptions import ValidationError

from ..models import Scope, ScopeEdge, User
from .authority import placed
from .rows import Findings, before_delete_of, check, delete, delete_rule_for, erase, exclusive, listed, sign, write
from .shares import Balance


def scope_save(
    scope: Scope,
    *,
    parents: Sequence[Scope] | None = None,
    funding: Scope | None = None,
    actor: User | None,
    reason: str = "",
) -> list[str]:
    """Writes a scope and, where `parents` is given, its place in the graph: these parents in this order and no others.

    `funding` is the parent whose guarantee it draws on; without `parents` it marks one of those it has. Returns warnings.
    """
    with exclusive():
        sign(scope, actor, reason)
        warnings = check(scope)
        if parents is None and funding is not None:
            parents = parents_of(scope)
        parents, funding = placed(scope, parents, funding, actor)
        if parents is None:
            write(scope, actor=actor, reason=reason)
            return warnings
        check_parents(scope, parents, funding)
        balance = Balance(scope, actor)
        write(scope, actor=actor, reason=reason)
        _write_edges(scope, parents, funding, actor, reason)
        balance.check()
    return warnings


def scope_delete(scope: Scope, *, actor: User | None, reason: str = "") -> None:
    """Deletes a scope with its quotas and memberships; refused while it has children or models, naming them."""
    delete(scope, actor=actor, reason=reason)


@before_delete_of(Scope)
def take_along(scope: Scope, actor: User | None, reason: str) -> None:
    """Each with its own history, which a cascade would leave without the reason."""
    for row in [*scope.quotas.all(), *scope.memberships.all(), *scope.parent_edges.all()]:
        erase(row, actor=actor, reason=reason)


@delete_rule_for(Scope)
def refuse_with_children(scope: Scope, findings: Findings) -> None:
    children = list(scope.children.values_list("name", flat=True))
    if children:
        findings.refuse("__all__", f"{scope} has children: {listed(children)}. Put them under other parents first.")


def parents_of(scope: Scope) -> list[Scope]:
    return [edge.parent for edge in scope.parent_edges.select_related("parent")] if scope.pk else []


def check_place(scope: Scope, parents: Sequence[Scope], funding: Scope | None, actor: User | None) -> None:
    """Refuses what `scope_save` would refuse of these parents."""
    whole, funding = placed(scope, parents, funding, actor)
    check_parents(scope, whole or (), funding)


def check_parents(scope: Scope, parents: Sequence[Scope], funding: Scope | None = None) -> None:
    """Refuses a parent named twice, a funding scope that is no parent, the scope itself, and cycles, naming the path."""
    ids = [parent.pk for parent in parents]
    if len(set(ids)) < len(ids):
        raise ValidationError({"parents": "A parent is named twice."})
    if funding is not None and funding.pk not in ids:
        raise ValidationError({"funding": f"{funding} is not among the parents."})
    if scope.pk is None:
        return
    if scope.pk in ids:
        raise ValidationError({"parents": f"{scope} cannot be its own parent."}, code="cycle")
    path = _path_up(ids, scope.pk)
    if path:
        named = dict(Scope.objects.filter(pk__in=path).values_list("pk", "name"))
        sentence = " → ".join(named[key] for key in [scope.pk, *path])
        raise ValidationError({"parents": f"This would be a cycle: {sentence}."}, code="cycle")


def _path_up(starts: Sequence[int], goal: int) -> list[int]:
    """The ids from one of the starts up to the goal by stored parents; empty where none leads there. Ends on stored cycles."""
    came_from: dict[int, int | None] = dict.fromkeys(starts)
    frontier = list(came_from)
    while frontier:
        above: list[int] = []
        for child, parent in _edges_above(frontier):
            if parent not in came_from:
                came_from[parent] = child
                above.append(parent)
        if goal in came_from:
            return _walk_back(came_from, goal)
        frontier = above
    return []


def _edges_above(children: Sequence[int]) -> list[tuple[int, int]]:
    edges: list[tuple[int, int]] = []
    # databases bound the number of values in one query
    for start in range(0, len(children), 500):
        part = children[start : start + 500]
        edges += ScopeEdge.objects.filter(child_id__in=part).order_by("id").values_list("child_id", "parent_id")
    return edges


def _walk_back(came_from: dict[int, int | None], goal: int) -> list[int]:
    path: list[int] = []
    step: int | None = goal
    while step is not None:
        path.append(step)
        step = came_from[step]
    return path[::-1]


def _write_edges(scope: Scope, parents: Sequence[Scope], funding: Scope | None, actor: User | None, reason: str) -> None:
    stored = {edge.parent_id: edge for edge in scope.parent_edges.all()}
    wanted = {parent.pk for parent in parents}
    for edge in stored.values():
        if edge.parent_id not in wanted:
            erase(edge, actor=actor, reason=reason)
        elif edge.is_funding and (funding is None or edge.parent_id != funding.pk):
            # before another is marked: at no moment are there two
            edge.is_funding = False
            write(edge, actor=actor, reason=reason)
    for position, parent in enumerate(parents):
        edge = stored.get(parent.pk) or ScopeEdge(child=scope, parent=parent)
        edge.position = position
        edge.is_funding = funding is not None and parent.pk == funding.pk
        write(edge, actor=actor, reason=reason)
