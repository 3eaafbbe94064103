"""Measurements in use, the worst evidence first."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.db.models import Case, Count, IntegerField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from ..models import BenchRun, Measurement, Profile
from .frame import frame_of
from .live import live

PAGE_ROWS = 100
SWEEPS_SHOWN = 10


@live
def measurements(request: HttpRequest) -> HttpResponse:
    asked = request.GET.get("q", "").strip()[:200]
    found = _worst_first(Profile.objects.visible_to(request.user).filter(model__pool__in=frame_of(request).shown_pools))
    if asked:
        found = found.filter(model__name__icontains=asked)
    page = Paginator(found, PAGE_ROWS).get_page(request.GET.get("page"))
    profiles = list(page.object_list)
    used = Measurement.objects.select_related("slo").in_bulk([row.in_use for row in profiles if row.in_use])
    rows = [(profile, used.get(profile.in_use)) for profile in profiles]
    context = {"rows": rows, "page": page, "asked": asked, "sweeps": sweeps_of(request, asked), "place": "measurements"}
    return render(request, "pages/measurements.html", context)


def sweeps_of(request: HttpRequest, asked: str) -> list[BenchRun]:
    """The newest ones, those that are under way among them."""
    rows = BenchRun.objects.visible_to(request.user).filter(profile__model__pool__in=frame_of(request).shown_pools)
    if asked:
        rows = rows.filter(profile__model__name__icontains=asked)
    return list(rows.select_related("profile__model", "measurement").order_by("-created_at", "-id")[:SWEEPS_SHOWN])


def _worst_first(profiles: QuerySet[Any]) -> QuerySet[Any]:
    """None, outdated, assumed, unable, current; within each the oldest first, those that run before those that do not."""
    used = Measurement.objects.filter(profile=OuterRef("pk")).best_first()
    rank = Case(
        When(in_use__isnull=True, then=Value(0)),
        When(evidence=Measurement.Status.STALE, then=Value(1)),
        When(evidence=Measurement.Status.ASSUMED, then=Value(2)),
        When(concurrency=0, then=Value(3)),
        default=Value(4),
        output_field=IntegerField(),
    )
    annotated = profiles.select_related("model").annotate(
        in_use=Subquery(used.values("pk")[:1]),
        evidence=Subquery(used.values("status")[:1]),
        concurrency=Subquery(used.values("max_concurrency")[:1]),
        measured=Subquery(used.values("measured_at")[:1]),
        running=Count("replicas", filter=Q(replicas__gone_at__isnull=True)),
    )
    return annotated.annotate(rank=rank).order_by("rank", "measured", "model__name", "name", "pk")
