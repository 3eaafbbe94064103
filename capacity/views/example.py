"""Taking an example away, with its processes."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from .. import example
from ..models import Replica


@require_POST
def example_remove(request: HttpRequest) -> HttpResponse:
    if not request.user.may_operate:  # type: ignore[union-attr]
        raise PermissionDenied("Operators remove the example.")
    which = example.EXAMPLES.get(request.POST.get("pool", example.SIMULATED.pool))
    if which is None:
        raise Http404
    own = Replica.objects.filter(pool__name=which.pool, pool__is_example=True, is_registered=True, gone_at__isnull=True)
    names = list(own.order_by("name").values_list("name", flat=True))
    if names and "sure" not in request.POST:  # what the example did not bring goes in no single click
        return render(request, "pages/example_remove.html", {"pool": which.pool, "names": names, "place": "now"})
    example.remove(actor=request.user, which=which)
    messages.success(request, f"The pool {which.pool} is removed with all that was written of it; its engines are being ended.")
    return redirect("now")
