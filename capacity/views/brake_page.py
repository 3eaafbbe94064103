"""A pool's brake: the numbers and what is withheld first, then the acts of pulling it and of releasing exactly that."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers

from quotas.models import Pool
from quotas.services.rows import LONGEST_REASON

from .. import services
from ..briefings import brake_state
from ..models import Brake, LanguageModel, Replica
from .frame import frame_of

CHANGES_SHOWN = 8
ROWS_SHOWN = 200
ACTING = (LanguageModel.Mode.AUTO, LanguageModel.Mode.ADD_ONLY)


class UntilField(forms.CharField):
    """A span or an instant; None where it is empty."""

    def clean(self, value: Any) -> datetime | None:
        try:
            return brake_state.parse_until(super().clean(value), timezone.now())
        except ValueError as error:
            raise ValidationError(str(error)) from None


class PullForm(forms.Form):
    version = forms.CharField(max_length=64, required=False)
    until = UntilField(required=False, max_length=40)
    reason = forms.CharField(max_length=LONGEST_REASON, error_messages={"required": "Say why: it is kept in the history."})


class ReleaseForm(forms.Form):
    version = forms.CharField(max_length=64)
    reason = forms.CharField(max_length=LONGEST_REASON, error_messages={"required": "Say why: it is kept in the history."})


def brake_page(request: HttpRequest, name: str) -> HttpResponse:
    """POST `act=pull` withholds everything (of one that is on: as its `version` was shown); `act=release`
    lets through the list whose `version` was shown, and no other."""
    pool = visible_pool(request, name)
    act = request.POST.get("act", "") if request.method == "POST" else ""
    pull = PullForm(request.POST if act == "pull" else None)
    release = ReleaseForm(request.POST if act == "release" else None)
    status = 400 if request.method == "POST" else 200
    if pull.is_bound or release.is_bound:
        done, status = acted(request, pool, release if release.is_bound else pull)
        if done:
            return redirect("now")
        pool = visible_pool(request, name)
    response = render(request, "pages/brake.html", context(pool, pull, release), status=status)
    add_never_cache_headers(response)
    return response


def visible_pool(request: HttpRequest, name: str) -> Pool:
    """It names what runs for every scope: operators and admins look at it."""
    seen = {pool.pk for pool in frame_of(request).pools}
    pool = get_object_or_404(Pool.objects.select_related("settings", "brake").filter(pk__in=seen), name=name)
    if not request.user.may_operate:  # type: ignore[union-attr]
        raise PermissionDenied("Operators hold the brake.")
    return pool


def acted(request: HttpRequest, pool: Pool, form: forms.Form) -> tuple[bool, int]:
    """Whether the service took it, else with which status the page comes back; its refusals stand at the form."""
    if not form.is_valid():
        return False, 400
    given: dict[str, Any] = {**form.cleaned_data, "actor": request.user, "now": timezone.now()}
    try:
        if isinstance(form, ReleaseForm):
            services.brake_release(pool, **given)
            messages.success(request, f"{pool}: the brake is off, and what was withheld passes in the next pass.")
        else:
            services.brake_pull(pool, **given)
            messages.success(request, f"{pool}: the brake is on; from the next pass on nothing is started or stopped.")
    except ValidationError as error:
        form.add_error(None, error.messages)  # type: ignore[arg-type]
        return False, 409 if isinstance(error, services.Conflict) else 400
    return True, 200


def context(pool: Pool, pull: PullForm, release: ReleaseForm) -> dict[str, Any]:
    state = brake_state.state(pool, timezone.now())
    return {
        "pool": pool,
        "state": state,
        "rows": [{**row, "since": datetime.fromisoformat(row["since"])} for row in state.withheld[:ROWS_SHOWN]],
        "count": len(state.withheld),
        "acting": LanguageModel.objects.filter(pool=pool, mode__in=ACTING).count(),
        "running": Replica.objects.filter(pool=pool, gone_at=None).count(),
        "changes": Brake.history.filter(id=pool.brake.pk, changed_at__isnull=False)[:CHANGES_SHOWN],
        "pull": pull,
        "release": release,
        "longest": LONGEST_REASON,
        "place": "now",
    }
