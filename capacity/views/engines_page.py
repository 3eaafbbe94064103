"""Engines that run already: listed, looked at and registered, forgotten again."""

from __future__ import annotations

import shlex
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from quotas.services.rows import LONGEST_REASON

from .. import services
from ..models import LanguageModel, Node, Profile, Replica
from ..services.endpoints import why_not_forgotten
from ..sources.look import Look
from .frame import frame_of
from .model_page import visible_model
from .replica_rows import tests_of

PAGE_ROWS = 100
MOST_HOSTS = 50


class EngineForm(forms.Form):
    url = forms.CharField(label="Address", max_length=500)
    profile = forms.ModelChoiceField(queryset=Profile.objects.none(), to_field_name="name", empty_label=None)
    nodes = forms.ModelMultipleChoiceField(queryset=Node.objects.none(), to_field_name="name", label="Host")
    devices = forms.CharField(label="Devices", required=False, max_length=4000)
    name = forms.CharField(label="Name here", required=False, max_length=200)
    reason = forms.CharField(label="Why?", required=False, max_length=LONGEST_REASON)

    def __init__(self, *args: Any, model: LanguageModel, **options: Any) -> None:
        super().__init__(*args, **options)
        self.model = model
        self.fields["profile"].queryset = Profile.objects.filter(model=model).order_by("name")  # type: ignore[attr-defined]
        self.fields["nodes"].queryset = Node.objects.filter(pool=model.pool).order_by("name")  # type: ignore[attr-defined]

    def engine(self) -> Replica:
        given = self.cleaned_data
        return Replica(
            url=given["url"],
            model=self.model,
            profile=given["profile"],
            nodes=[node.name for node in given["nodes"]],
            devices=given["devices"].replace(",", " ").split(),
            name=given["name"],
        )

    def show(self, error: ValidationError) -> None:
        """A service's refusal, each sentence at its field where the form has it."""
        for field, sentences in error.message_dict.items() if hasattr(error, "error_dict") else [("", error.messages)]:
            self.add_error(field if field in self.fields else None, sentences)


def engines(request: HttpRequest) -> HttpResponse:
    """All that are registered, of the models that the user may see."""
    found = Replica.objects.visible_to(request.user).filter(  # type: ignore[misc]
        is_registered=True, gone_at__isnull=True, pool__in=frame_of(request).shown_pools
    )
    rows = found.select_related("model", "profile").order_by("model__name", "name")
    page = Paginator(rows, PAGE_ROWS).get_page(request.GET.get("page"))
    tests = tests_of(list(page.object_list), timezone.now())
    engines = [(engine, tests.get(engine.pk)) for engine in page]
    return render(request, "pages/engines.html", {"page": page, "engines": engines, "place": "models"})


@require_http_methods(["GET", "HEAD", "POST"])
def engine_add(request: HttpRequest) -> HttpResponse:
    """GET asks; POST with `act` look says what is read there, with anything else registers it."""
    model = visible_model(request, request.GET.get("model", ""))
    _require_operator(request)
    form = EngineForm(request.POST if request.method == "POST" else None, model=model)
    context: dict[str, Any] = {}
    if form.is_valid():
        try:
            if request.POST.get("act") != "look":
                return _registered(request, form)
            context["look"], context["warnings"] = services.endpoint_preview(form.engine())
        except ValidationError as error:
            form.show(error)
    return _asked(request, form, context)


def _registered(request: HttpRequest, form: EngineForm) -> HttpResponse:
    engine = form.engine()
    warnings = services.endpoint_add(engine, actor=request.user, reason=form.cleaned_data["reason"])  # type: ignore[arg-type]
    messages.success(request, f"{engine.name} is registered and {engine.state}. It is never stopped from here.")
    for warning in warnings:
        messages.warning(request, warning)
    return redirect("model", form.model.name)


def _asked(request: HttpRequest, form: EngineForm, found: dict[str, Any]) -> HttpResponse:
    foreign = Node.objects.filter(pool=form.model.pool).exclude(foreign_devices={}).order_by("name")[:MOST_HOSTS]
    context = {
        **found,
        "model": form.model,
        "form": form,
        "foreign": [(node.name, sorted(node.foreign_devices.items())) for node in foreign],
        "command": _command(form, found.get("look")),
        "longest": LONGEST_REASON,
        "place": "models",
    }
    return render(request, "pages/engine_add.html", context, status=400 if form.errors else 200)


def _command(form: EngineForm, look: Look | None) -> str:
    """The same act as a command, once a look has shown that it would be done."""
    if look is None:
        return ""
    engine = form.engine()
    given = ["--model", engine.model.name, "--profile", engine.profile.name]
    for name in engine.nodes:
        given += ["--node", name]
    if engine.devices:
        given += ["--devices", ",".join(engine.devices)]
    return f'manage.py endpoint_add {shlex.join([engine.url, *given])} --reason "…"'


class ForgetForm(forms.Form):
    reason = forms.CharField(label="Why?", max_length=LONGEST_REASON)


@require_http_methods(["GET", "HEAD", "POST"])
def engine_forget(request: HttpRequest, name: str) -> HttpResponse:
    """GET says what would change; POST forgets it. The engine runs on."""
    found = Replica.objects.visible_to(request.user).select_related("model", "profile")  # type: ignore[misc]
    engine = get_object_or_404(found, name=name, is_registered=True)
    _require_operator(request)
    form = ForgetForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            services.endpoint_remove(engine, actor=request.user, reason=form.cleaned_data["reason"])  # type: ignore[arg-type]
        except ValidationError as error:
            form.add_error(None, error.messages)  # type: ignore[arg-type]
        else:
            messages.success(request, f"{engine.name} is forgotten; it runs on.")
            return redirect("model", engine.model.name)
    others = Replica.objects.filter(model=engine.model, gone_at__isnull=True, state=Replica.State.READY).exclude(pk=engine.pk)
    context = {"engine": engine, "form": form, "others": others.count(), "fault": why_not_forgotten(engine), "place": "models"}
    return render(request, "pages/engine_forget.html", context, status=400 if form.errors else 200)


def _require_operator(request: HttpRequest) -> None:
    if not request.user.may_operate:  # type: ignore[union-attr]
        raise PermissionDenied("Operators register and forget engines.")
