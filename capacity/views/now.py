"""The first page: what needs a person, and how loaded everything is."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from ..models import Decision, LanguageModel, Node
from .board import ordered, rows
from .frame import Frame, frame_of
from .hardware import by_class, held_units, is_silent
from .live import live

MODELS_SHOWN = 20
DECISIONS_SHOWN = 8


@live
def now(request: HttpRequest) -> HttpResponse:
    frame = frame_of(request)
    models = LanguageModel.objects.visible_to(request.user).filter(pool__in=frame.shown_pools)
    total = models.count()
    context: dict[str, Any] = {"total_models": total, "place": "now"}
    if total:
        context["rows"] = rows(ordered(models)[:MODELS_SHOWN], frame.now, with_spark=True)
        context["decisions"] = changes(frame)
    if frame.user.sees_everything:
        context["classes"] = by_class(open_nodes(frame), held_units(pool.pk for pool in frame.shown_pools))
    return render(request, "pages/now.html", context)


def changes(frame: Frame) -> list[Decision]:
    """The last decisions that changed something, or could not."""
    found = Decision.objects.visible_to(frame.user).filter(pool__in=frame.shown_pools).exclude(reason="steady")
    return list(found.select_related("model")[:DECISIONS_SHOWN])


def open_nodes(frame: Frame) -> list[tuple[Node, bool]]:
    """Each node, and whether it may take new replicas now."""
    found = Node.objects.filter(pool__in=frame.shown_pools).select_related("pool__settings")
    return [(node, node.schedulable and not is_silent(node, _silent_seconds(node), frame.now)) for node in found]


def _silent_seconds(node: Node) -> int:
    pool_settings = getattr(node.pool, "settings", None)
    return pool_settings.node_silent_seconds if pool_settings else 30
