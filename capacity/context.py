"""What every page shows around its content."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from .views.frame import frame_of


def frame(request: HttpRequest) -> dict[str, Any]:
    user = getattr(request, "user", None)
    return {"frame": frame_of(request)} if user is not None and user.is_authenticated else {}
