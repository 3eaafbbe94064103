"""Switching a model off: who uses it first, then a reason."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from quotas.services.rows import LONGEST_REASON

from .. import services
from ..briefings.retirement import sentences_of, use_of
from ..models import LanguageModel
from .model_page import model_page, visible_model


class RetireForm(forms.Form):
    reason = forms.CharField(label="Why?", max_length=LONGEST_REASON, error_messages={"required": "Say why it is switched off."})


def retire_page(request: HttpRequest, name: str) -> HttpResponse:
    """GET shows, POST does. A model that is itself named `…/retire` has this address for its page."""
    if request.method != "POST" and LanguageModel.objects.visible_to(request.user).filter(name=f"{name}/retire").exists():  # type: ignore[misc]
        return model_page(request, f"{name}/retire")
    model = visible_model(request, name)
    if not request.user.may_operate:  # type: ignore[union-attr]
        raise PermissionDenied("Operators switch models off.")
    form = RetireForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid() and retired(request, model, form):
        return redirect("model", model.name)
    now = timezone.now()
    context = {"model": model, "told": sentences_of(use_of(model, now), now), "form": form, "place": "models"}
    return render(request, "pages/retire.html", context, status=400 if form.errors else 200)


def retired(request: HttpRequest, model: LanguageModel, form: RetireForm) -> bool:
    try:
        services.model_retire(model, actor=request.user, reason=form.cleaned_data["reason"])  # type: ignore[arg-type]
    except ValidationError as error:
        form.add_error(None, error.messages)  # type: ignore[arg-type]
        return False
    messages.success(request, f"{model.name} is off: nothing is started for it, and what runs is drained.")
    return True
