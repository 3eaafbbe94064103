"""How far a model may act: its scorecard, its evidence, the next pass in another mode, and the switch."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from quotas.services.rows import LONGEST_REASON

from .. import clock, services
from ..briefings.mode_facts import NEXT, Facts, facts_of
from ..briefings.retirement import sentences_of, use_of
from ..domain.scorecard import Side
from ..models import LanguageModel
from ..services.modes import kept_while_resting
from .model_page import model_page, visible_model
from .watch import watched

AROUND = timedelta(hours=1)


class ModeForm(forms.Form):
    mode = forms.ChoiceField(choices=LanguageModel.Mode.choices, widget=forms.HiddenInput)
    reason = forms.CharField(label="Why?", required=False, max_length=LONGEST_REASON)


def mode_page(request: HttpRequest, name: str) -> HttpResponse:
    """GET looks at `?mode=`; POST switches to it. A model that is itself named `…/mode` has this address for its page."""
    if request.method != "POST" and LanguageModel.objects.visible_to(request.user).filter(name=f"{name}/mode").exists():  # type: ignore[misc]
        return model_page(request, f"{name}/mode")
    model = visible_model(request, name)
    form = ModeForm(request.POST if request.method == "POST" else None)
    if request.method == "POST":
        if not request.user.may_operate:  # type: ignore[union-attr]
            raise PermissionDenied("Operators switch modes.")
        if form.is_valid() and switched(request, model, form):
            return redirect("model", model.name)
    return shown(request, model, form)


class RestForm(forms.Form):
    reason = forms.CharField(label="Why?", max_length=LONGEST_REASON, error_messages={"required": "Say why removals may go on."})


def end_rest(request: HttpRequest, name: str) -> HttpResponse:
    """POST alone; any other method is for a model that is itself named `…/end_rest`."""
    if request.method != "POST":
        return model_page(request, f"{name}/end_rest")
    model = visible_model(request, name)
    if not request.user.may_operate:  # type: ignore[union-attr]
        raise PermissionDenied("Operators end the rest of removals.")
    form = RestForm(request.POST)
    if form.is_valid() and ended(request, model, form):
        return redirect("model", model.name)
    return shown(request, model, ModeForm(), rest_form=form)


def ended(request: HttpRequest, model: LanguageModel, form: RestForm) -> bool:
    try:
        services.end_rest(model, actor=request.user, reason=form.cleaned_data["reason"], now=timezone.now())  # type: ignore[arg-type]
    except ValidationError as error:
        form.add_error(None, error.messages)  # type: ignore[arg-type]
        return False
    messages.success(request, f"Removals of {model.name} may go on.")
    return True


def switched(request: HttpRequest, model: LanguageModel, form: ModeForm) -> bool:
    """Whether the service took it; its refusals stand at the form."""
    before, mode, reason = model.mode, form.cleaned_data["mode"], form.cleaned_data["reason"]
    try:
        warnings = services.model_mode(model, mode, actor=request.user, reason=reason)  # type: ignore[arg-type]
    except ValidationError as error:
        model.mode = before
        form.add_error(None, error.messages)  # type: ignore[arg-type]
        return False
    messages.success(request, f"{model.name} is in mode {model.get_mode_display()}.")
    for warning in warnings:
        messages.warning(request, warning)
    return True


def shown(request: HttpRequest, model: LanguageModel, form: ModeForm, rest_form: RestForm | None = None) -> HttpResponse:
    asked = request.POST.get("mode") or request.GET.get("mode") or ""
    mode = asked if asked in LanguageModel.Mode.values else NEXT[model.mode]
    facts = facts_of(model, mode, timezone.now())
    context = {
        "model": model,
        "facts": facts,
        "card": facts.card.card,
        "sides": sides(facts, timezone.now()),
        "modes": LanguageModel.Mode.choices,
        "asked": mode,
        "told": told_before_a_pause(model, mode, timezone.now()),
        "asked_words": LanguageModel.Mode(mode).label,
        "form": form,
        "rest_form": rest_form or RestForm(),
        "watch": watched(model, timezone.now()),
        "kept": kept_while_resting(model),
        "longest": LONGEST_REASON,
        "place": "models",
    }
    refused = form.errors or (rest_form and rest_form.errors)
    return render(request, "pages/mode.html", context, status=400 if refused else 200)


def told_before_a_pause(model: LanguageModel, mode: str, now: datetime) -> list[str]:
    """Who uses it, where it is asked for the first time: paused, nothing is started for their requests."""
    return sentences_of(use_of(model, now), now) if mode == LanguageModel.Mode.PAUSED != model.mode else []


def sides(facts: Facts, now: datetime) -> list[dict[str, Any]]:
    """The two columns, each with the address of the chart around its worst five minutes."""
    card = facts.card.card
    return [
        {"title": title, "side": side, "worst_url": chart_url(facts.model, side, now)}
        for title, side in (("llmgw, had it acted", card.kept), ("what ran", card.ran))
    ]


def chart_url(model: LanguageModel, side: Side, now: datetime) -> str:
    if side.worst is None:
        return ""
    until = min(side.worst.at + AROUND, now)
    query = urlencode({"from": clock.iso(side.worst.at - AROUND), "to": clock.iso(until)})
    return f"{reverse('model', args=[model.name])}?{query}"
