"""What was decided, why, and what it was limited by."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from ..domain.reasons import LIMITS, REASONS
from ..models import Decision
from .frame import frame_of
from .live import live
from .words import COULD_NOT, sentence, title

PAGE_ROWS = 50
OUTCOMES = ("add", "remove", "hold")
LATEST = 253402300799  # the last second that a date can tell


@live
def decisions(request: HttpRequest) -> HttpResponse:
    asked = {key: request.GET.get(key, "").strip()[:200] for key in ("model", "outcome", "reason", "could_not", "from", "to")}
    found = Decision.objects.visible_to(request.user).filter(pool__in=frame_of(request).shown_pools).select_related("model")
    page = Paginator(_filtered(found, asked), PAGE_ROWS).get_page(request.GET.get("page"))
    page.object_list = frame_of(request).telling.rows(page.object_list)
    context = {
        "page": page,
        "asked": asked,
        "is_filtered": any(asked.values()),
        "outcomes": OUTCOMES,
        "reasons": sorted((code, title(code)) for code in REASONS),
        "place": "decisions",
    }
    return render(request, "pages/decisions.html", context)


def _filtered(found: QuerySet[Any], asked: dict[str, str]) -> QuerySet[Any]:
    if asked["model"]:
        found = found.filter(model__name__icontains=asked["model"])
    if asked["outcome"] in OUTCOMES:
        found = found.filter(outcome=asked["outcome"])
    if asked["reason"] in REASONS:
        found = found.filter(reason=asked["reason"])
    if asked["could_not"]:
        found = found.filter(reason__in=COULD_NOT)
    since, until = _instant(asked["from"]), _instant(asked["to"])
    found = found.filter(at__gte=since) if since else found
    return found.filter(at__lte=until) if until else found


def _instant(seconds: str) -> datetime | None:
    """Epoch seconds, as the chart's pills link; anything else is no bound."""
    if not (seconds.isascii() and seconds.isdigit()) or int(seconds) > LATEST:
        return None
    return datetime.fromtimestamp(int(seconds), UTC)


@live
def decision(request: HttpRequest, pk: int) -> HttpResponse:
    found = Decision.objects.visible_to(request.user).select_related("model__scope", "pool")
    row = frame_of(request).telling.row(get_object_or_404(found, pk=pk))
    context = {
        "decision": row,
        "meaning": sentence(row.reason),
        "limits": [_limit(limit) for limit in row.limited_by if isinstance(limit, dict)],
        "actions": row.actions.all(),
        "place": "decisions",
    }
    return render(request, "pages/decision.html", context)


def _limit(limit: dict[str, Any]) -> tuple[str, str, str]:
    """A limit's code, its words, and its numbers as they stood then."""
    kind = str(limit.get("kind"))
    word = LIMITS.get(kind)
    numbers = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in limit.items() if key != "kind")
    return kind, word.title if word else kind.replace("_", " "), numbers
