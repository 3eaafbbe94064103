"""The first page: what needs a person, and how loaded everything is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import F, OuterRef, Q, Subquery, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from ..models import Decision, LanguageModel, Measurement, Node, Replica, Sample
from ..observation.hearing import heard
from .attention import newest
from .board import ordered, rows
from .frame import Frame, frame_of
from .hardware import by_class, held_units
from .live import live
from .words import SHORT

MODELS_SHOWN = 20
DECISIONS_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """Numbers first: replicas wanted and not placed, and since when; models over capacity; units held, and on sure ground."""

    missing: int
    oldest: Decision | None
    over: int
    held: int
    sure: int


@live
def now(request: HttpRequest) -> HttpResponse:
    frame = frame_of(request)
    models = LanguageModel.objects.visible_to(request.user).filter(pool__in=frame.shown_pools)
    total = models.count()
    context: dict[str, Any] = {"total_models": total, "place": "now"}
    if total:
        context["rows"] = rows(ordered(models)[:MODELS_SHOWN], frame.now, with_spark=True)
        context["decisions"] = changes(frame)
        context["tiles"] = _tiles(frame)
    if frame.user.sees_everything:
        classes = by_class(open_nodes(frame), held_units(pool.pk for pool in frame.shown_pools))
        context["classes"] = sorted(classes, key=lambda units: (-units.held, units.name))
    return render(request, "pages/now.html", context)


def _tiles(frame: Frame) -> Tiles:
    seen = LanguageModel.objects.visible_to(frame.user)
    now_samples = Sample.objects.filter(newest(frame, "at"), model__in=seen)
    placed = F("ready") + F("unready") + F("starting")
    counts = now_samples.aggregate(
        missing=Sum(F("wanted") - placed, filter=Q(wanted__gt=placed), default=0),
        over=Sum(1, filter=Q(demand_low__gt=F("capacity_ready")), default=0),
    )
    missing = now_samples.filter(wanted__gt=placed).values("model")  # at its maximum a model wants no more than it has
    short = Decision.objects.visible_to(frame.user).filter(newest(frame, "seen_until"), reason__in=SHORT, model__in=missing)
    held, sure = _units(frame)
    return Tiles(missing=counts["missing"], over=counts["over"], oldest=short.order_by("at", "id").first(), held=held, sure=sure)


def _units(frame: Frame) -> tuple[int, int]:
    """Units that replicas hold; of these the ones of models under auto whose profile's measurement is current."""
    used = Measurement.objects.filter(profile=OuterRef("profile")).best_first().values("status")[:1]
    found = Replica.objects.visible_to(frame.user).filter(gone_at__isnull=True, pool__in=frame.shown_pools)
    sure = Q(model__mode=LanguageModel.Mode.AUTO, evidence=Measurement.Status.CURRENT)
    units = F("units") * F("profile__hosts")  # a replica holds its units on each of its hosts
    counts = found.annotate(evidence=Subquery(used)).aggregate(
        held=Sum(units, default=0), sure=Sum(units, filter=sure, default=0)
    )
    return counts["held"], counts["sure"]


def changes(frame: Frame) -> list[Decision]:
    """The last decisions that changed something, or could not."""
    found = Decision.objects.visible_to(frame.user).filter(pool__in=frame.shown_pools).exclude(reason="steady")
    return frame.telling.rows(found.select_related("model")[:DECISIONS_SHOWN])


def open_nodes(frame: Frame) -> list[tuple[Node, bool]]:
    """Each node, and whether it may take new replicas now."""
    found = Node.objects.filter(pool__in=frame.shown_pools).select_related("pool__settings", "pool__lease")
    return [(node, node.schedulable and heard(node, frame.now) == "reporting") for node in found]
