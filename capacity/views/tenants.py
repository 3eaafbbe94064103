"""Scopes with their parents, quotas and used units."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from quotas.models import CapacityQuota, Scope, ScopeEdge
from quotas.services import editable_by

from ..models import LanguageModel, Replica
from .frame import frame_of
from .live import live

PAGE_ROWS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRow:
    """A scope: visible parents (the funding one first), quotas, used units by class of it and all below it. `is_editable`: by
    the reader."""

    scope: Scope
    parents: list[str]
    quotas: list[CapacityQuota]
    used: list[tuple[str, int]]
    models: int
    is_editable: bool


@live
def tenants(request: HttpRequest) -> HttpResponse:
    asked = request.GET.get("q", "").strip()[:200]
    visible = Scope.objects.visible_to(request.user)
    found = visible.filter(name__icontains=asked) if asked else visible
    page = Paginator(found, PAGE_ROWS).get_page(request.GET.get("page"))
    context = {"rows": _rows(request, list(page.object_list)), "page": page, "asked": asked, "place": "tenants"}
    return render(request, "pages/tenants.html", context)


def _rows(request: HttpRequest, scopes: list[Scope]) -> list[ScopeRow]:
    names = dict(Scope.objects.visible_to(request.user).values_list("pk", "name"))
    parents = _parents()
    used = _used(request, parents)
    quotas: dict[int, list[CapacityQuota]] = defaultdict(list)
    for quota in CapacityQuota.objects.visible_to(request.user).filter(scope__in=scopes).select_related("pool"):
        quotas[quota.scope_id].append(quota)
    edits = editable_by(request.user)
    models = Counter(LanguageModel.objects.filter(scope__in=scopes).values_list("scope_id", flat=True))
    return [
        ScopeRow(
            scope=scope,
            parents=[names[parent] for parent in parents.get(scope.pk, ()) if parent in names],
            quotas=quotas[scope.pk],
            used=sorted(used[scope.pk].items()),
            models=models[scope.pk],
            is_editable=edits(scope.pk),
        )
        for scope in scopes
    ]


def _parents() -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    edges = ScopeEdge.objects.order_by("-is_funding", "position", "id")
    for child, parent in edges.values_list("child_id", "parent_id"):
        found[child].append(parent)
    return found


def _used(request: HttpRequest, parents: Mapping[int, list[int]]) -> Mapping[int, Counter[str]]:
    """Scope → class → units that replicas hold in it and below it; each replica counts once in each ancestor."""
    pools = frame_of(request).shown_pools
    held: dict[int, Counter[str]] = defaultdict(Counter)
    rows = Replica.objects.filter(gone_at__isnull=True, model__scope__isnull=False, pool__in=pools)
    for scope, resource, units, nodes in rows.values_list("model__scope_id", "profile__resource", "units", "nodes"):
        held[scope][resource] += units * max(1, len(nodes))
    used: dict[int, Counter[str]] = defaultdict(Counter)
    for scope, units in held.items():
        for above in _with_ancestors(scope, parents):
            used[above].update(units)
    return used


def _with_ancestors(scope: int, parents: Mapping[int, list[int]]) -> set[int]:
    seen, frontier = {scope}, [scope]
    while frontier:
        fresh = {parent for child in frontier for parent in parents.get(child, ())} - seen
        seen |= fresh
        frontier = list(fresh)
    return seen
