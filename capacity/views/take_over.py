"""Taking a pool over: its numbers first, then a reason."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from quotas.forms import sentences
from quotas.services.rows import LONGEST_REASON

from .. import services
from ..briefings.take_over_words import sentences_of
from ..models import Lease
from ..wiring import deps


class TakeOverForm(forms.Form):
    reason = forms.CharField(max_length=LONGEST_REASON, label="Why")


@require_http_methods(["GET", "HEAD", "POST"])
def take_over(request: HttpRequest, name: str) -> HttpResponse:
    if not request.user.may_operate:  # type: ignore[union-attr]
        raise PermissionDenied("Operators take pools over.")
    lease = get_object_or_404(Lease.objects.select_related("pool"), pool__name=name)
    form = TakeOverForm(request.POST if request.method == "POST" else None)
    context: dict[str, Any] = {"pool": lease.pool, "form": form, "place": "now", "last": last_of(lease)}
    try:
        found = services.take_over_preview(lease, deps().driver.observe(name), deps().installation)
        if request.method == "POST" and form.is_valid():
            return done(request, lease, form.cleaned_data["reason"])
        context["told"] = sentences_of(found, is_preview=True)
        context["has_other"] = found.hosts_of_others or found.installation_before not in {"", found.installation}
    except ValidationError as refusal:
        context["refusals"] = sentences(refusal)
    return render(request, "pages/take_over.html", context, status=400 if form.errors else 200)


def last_of(lease: Lease) -> Any:
    """The history's row of the last take-over; None where there was none."""
    return lease.history.filter(taken_over_at_generation__gt=0).select_related("history_user").first()


def done(request: HttpRequest, lease: Lease, reason: str) -> HttpResponse:
    services.take_over(
        lease,
        deps().driver,
        installation=deps().installation,
        actor=request.user,  # type: ignore[arg-type]
        reason=reason,
        now=timezone.now(),
    )
    messages.success(request, f"{lease.pool} is taken over; its models act in their own modes from the next pass on.")
    return redirect("now")
