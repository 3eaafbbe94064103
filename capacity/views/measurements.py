"""Measurements in use, the worst evidence first."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.db.models import Case, Count, IntegerField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from ..models import BenchRun, Measurement, Profile
from .frame import Frame, frame_of
from .live import live

PAGE_ROWS = 100
SWEEPS_SHOWN = 10
SUBJECT = "measurement:"
UNBOUNDED = (Measurement.Kind.AT_LEAST, Measurement.Kind.NOT_BINDING)
UNLOCATED = (*UNBOUNDED, "")
"""Those without a kind say nothing of their limit."""
LOCATED = 9


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
    context = {
        "rows": rows,
        "page": page,
        "asked": asked,
        "sweeps": sweeps_of(request, asked),
        "skipped": skipped_rows(frame_of(request)),
        "place": "measurements",
    }
    return render(request, "pages/measurements.html", context)


def sweeps_of(request: HttpRequest, asked: str) -> list[BenchRun]:
    """The newest ones, those that are under way among them."""
    rows = BenchRun.objects.visible_to(request.user).filter(profile__model__pool__in=frame_of(request).shown_pools)
    if asked:
        rows = rows.filter(profile__model__name__icontains=asked)
    return list(rows.select_related("profile__model", "measurement").order_by("-created_at", "-id")[:SWEEPS_SHOWN])


def skipped_rows(frame: Frame) -> list[tuple[str, str]]:
    """(profile, why) of measurements that the newest passes could not use. They name profiles of every scope."""
    if not frame.user.sees_everything:
        return []
    problems = [problem for row in frame.passes for problem in row.problems if isinstance(problem, dict)]
    of_rows = [(str(problem.get("subject", "")), str(problem.get("detail", ""))) for problem in problems]
    return sorted({(subject.removeprefix(SUBJECT), why) for subject, why in of_rows if subject.startswith(SUBJECT)})


def _worst_first(profiles: QuerySet[Any]) -> QuerySet[Any]:
    """None, outdated, assumed, at least, unable, current; within each the oldest first."""
    rank = _ranked(
        When(in_use__isnull=True, then=Value(0)),
        When(evidence=Measurement.Status.STALE, then=Value(1)),
        When(evidence=Measurement.Status.ASSUMED, then=Value(2)),
        When(kind__in=UNBOUNDED, then=Value(3)),
        When(concurrency=0, then=Value(4)),
    )
    return with_evidence(profiles).annotate(rank=rank).order_by("rank", "measured", "model__name", "name", "pk")


def to_measure(profiles: QuerySet[Any]) -> QuerySet[Any]:
    """What is worth a sweep: outdated in use, unmeasured, outdated, assumed, limit not located, never met; within each those
    first that most replicas rest on. Retired profiles and those whose limit was located are none."""
    rank = _ranked(
        When(evidence=Measurement.Status.STALE, running__gt=0, then=Value(0)),
        When(in_use__isnull=True, then=Value(1)),
        When(evidence=Measurement.Status.STALE, then=Value(2)),
        When(evidence=Measurement.Status.ASSUMED, then=Value(3)),
        When(concurrency=0, then=Value(5)),
        When(kind__in=UNLOCATED, then=Value(4)),
    )
    waiting = with_evidence(profiles.exclude(state=Profile.State.RETIRE)).annotate(rank=rank).filter(rank__lt=LOCATED)
    return waiting.order_by("rank", "-running", "measured", "model__name", "name", "pk")


def _ranked(*whens: When) -> Case:
    return Case(*whens, default=Value(LOCATED), output_field=IntegerField())


def with_evidence(profiles: QuerySet[Any]) -> QuerySet[Any]:
    """Each with the measurement in use, what it says, and how many replicas run."""
    used = Measurement.objects.filter(profile=OuterRef("pk")).best_first()
    return profiles.select_related("model").annotate(
        in_use=Subquery(used.values("pk")[:1]),
        evidence=Subquery(used.values("status")[:1]),
        kind=Subquery(used.values("kind")[:1]),
        concurrency=Subquery(used.values("max_concurrency")[:1]),
        measured=Subquery(used.values("measured_at")[:1]),
        running=Count("replicas", filter=Q(replicas__gone_at__isnull=True)),
    )
