"""Pausing the replacing of a model's outdated replicas, with a reason, and letting it go on."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from quotas.services.rows import LONGEST_REASON

from .. import services
from ..models import LanguageModel
from ..outdated import outdated_of
from .model_page import model_page, visible_model


class ReplacingForm(forms.Form):
    act = forms.ChoiceField(choices=[("pause", "pause"), ("resume", "resume")])
    reason = forms.CharField(label="Why?", max_length=LONGEST_REASON, error_messages={"required": "Say why: give a reason."})


def replacing_page(request: HttpRequest, name: str) -> HttpResponse:
    """GET shows, POST does. A model that is itself named `…/replacing` has this address for its page."""
    whole = LanguageModel.objects.visible_to(request.user).filter(name=f"{name}/replacing")  # type: ignore[misc]
    if request.method != "POST" and whole.exists():
        return model_page(request, f"{name}/replacing")
    model = visible_model(request, name)
    if not request.user.may_operate:  # type: ignore[union-attr]
        raise PermissionDenied("Operators pause replacing.")
    form = ReplacingForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        paused = form.cleaned_data["act"] == "pause"
        services.model_replacing(model, paused, actor=request.user, reason=form.cleaned_data["reason"])  # type: ignore[arg-type]
        messages.success(request, f"Replacing of {model.name} {'is paused' if paused else 'goes on'}.")
        return redirect("model", model.name)
    is_paused = model.profiles.filter(replacing_paused=True).exists()
    context = {"model": model, "outdated": outdated_of(model), "is_paused": is_paused, "form": form, "place": "models"}
    return render(request, "pages/replacing.html", context, status=400 if form.errors else 200)
