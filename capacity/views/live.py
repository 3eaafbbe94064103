"""Pages that refresh: a poll without a newer pass is answered with nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.cache import add_never_cache_headers

from .frame import frame_of

Page = Callable[..., HttpResponse]


def live(page: Page) -> Page:
    """`?seen=` names the passes that the browser has drawn: 204 while there are no others. Never stored by caches."""

    @wraps(page)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        seen = request.GET.get("seen")
        if seen is not None and seen == frame_of(request).seen:
            response = HttpResponse(status=204)
        else:
            response = page(request, *args, **kwargs)
        add_never_cache_headers(response)
        return response

    return answer
