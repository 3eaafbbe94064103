"""All models, the most loaded first, found by name."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from ..models import LanguageModel, Replica
from .board import ordered, rows
from .frame import frame_of
from .live import live

PAGE_ROWS = 50


@live
def model_list(request: HttpRequest) -> HttpResponse:
    frame = frame_of(request)
    asked = request.GET.get("q", "").strip()[:200]
    visible = LanguageModel.objects.visible_to(request.user)
    if asked and visible.filter(name=asked).exists():
        return redirect("model", name=asked)
    if asked and Replica.objects.visible_to(request.user).filter(name=asked).exists():
        return redirect("replica", name=asked)
    found = visible.filter(pool__in=frame.shown_pools)
    if asked:
        found = found.filter(name__icontains=asked)
    mode = request.GET.get("mode", "")
    if mode in LanguageModel.Mode.values:
        found = found.filter(mode=mode)
    page = Paginator(ordered(found), PAGE_ROWS).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "rows": rows(page.object_list, frame.now),
        "asked": asked,
        "mode": mode,
        "modes": LanguageModel.Mode.choices,
        "is_filtered": bool(asked or mode),
        "place": "models",
    }
    return render(request, "pages/models.html", context)
