"""Taking the example away, with its processes."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from .. import example


@require_POST
def example_remove(request: HttpRequest) -> HttpResponse:
    if not request.user.may_operate:  # type: ignore[union-attr]
        raise PermissionDenied("Operators remove the example.")
    example.remove(actor=request.user)
    messages.success(request, "The example is removed; its engines are being ended.")
    return redirect("now")
