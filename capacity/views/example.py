"""Taking an example away, with its processes."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from .. import example


@require_POST
def example_remove(request: HttpRequest) -> HttpResponse:
    if not request.user.may_operate:  # type: ignore[union-attr]
        raise PermissionDenied("Operators remove the example.")
    which = example.EXAMPLES.get(request.POST.get("pool", example.SIMULATED.pool))
    if which is None:
        raise Http404
    example.remove(actor=request.user, which=which)
    messages.success(request, f"The example {which.pool} is removed; its engines are being ended.")
    return redirect("now")
