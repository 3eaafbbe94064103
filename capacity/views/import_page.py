"""Result files of load generators: dropped, looked at with the measurement that would result, then stored."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.core import signing
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_http_methods

from quotas.services.rows import LONGEST_REASON

from ..bench.imports import Imported, ReadFile
from ..domain.measurement.document import evidence_of
from ..domain.measurement.evidence import sweep_of
from ..domain.measurement.table import title
from ..domain.measurement.types import Judgement, Skipped, Sweep
from ..importing import LARGEST_UPLOAD, Asked, Judged, judged, read_uploads, store, would_store
from ..models import Profile, Slo
from ..sweep_charts import Curve, sweep_figure
from ..sweep_rows import stage_rows_of

SALT: Final = "llmgw.import"
MOST_SWEEPS: Final = 50
MOST_CURVES: Final = 5


class ImportForm(forms.Form):
    profile = forms.ModelChoiceField(queryset=Profile.objects.none(), required=False)
    slo = forms.CharField(max_length=200, required=False)
    replicas = forms.IntegerField(min_value=1, required=False)
    sweep = forms.IntegerField(min_value=1, required=False)
    concurrency = forms.IntegerField(min_value=1, max_value=10**12, required=False)
    reason = forms.CharField(max_length=LONGEST_REASON, required=False)
    file = forms.Field(required=False)
    carried = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, profiles: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["profile"].queryset = profiles.select_related("model__slo").order_by("model__name", "name")  # type: ignore[attr-defined]

    def asked(self) -> Asked:
        return Asked(**{name: self.cleaned_data[name] for name in ("profile", "slo", "replicas", "sweep", "concurrency")})

    def show(self, error: ValidationError) -> None:
        for field, sentences in error.message_dict.items() if hasattr(error, "error_dict") else [("", error.messages)]:
            self.add_error(field if field in self.fields else None, sentences)


@require_http_methods(["GET", "HEAD", "POST"])
def measurements_import(request: HttpRequest) -> HttpResponse:
    """POST with `act` store stores; with anything else it says what would be stored. Files are read once and then carried."""
    if not request.user.may_operate:  # type: ignore[union-attr]
        raise PermissionDenied("Operators import measurements.")
    profiles = Profile.objects.visible_to(request.user)  # type: ignore[misc]
    given = request.POST if request.method == "POST" else None
    form = ImportForm(given, profiles=profiles, initial={"profile": request.GET.get("profile")})
    context: dict[str, Any] = {}
    if form.is_valid():
        try:
            found = judged(_imported(request, form), form.asked())
            context = previewed(found)
            if request.POST.get("act") == "store":
                return stored(request, form, found)
        except ValidationError as error:
            form.show(error)
    return shown(request, form, context)


def _imported(request: HttpRequest, form: ImportForm) -> Imported:
    files = request.FILES.getlist("file")
    if not files and form.cleaned_data["carried"]:
        return carried(form.cleaned_data["carried"])
    return read_uploads(files)


def stored(request: HttpRequest, form: ImportForm, found: Judged) -> HttpResponse:
    measurement, warnings = store(found, actor=request.user, reason=form.cleaned_data["reason"])  # type: ignore[arg-type]
    if measurement.is_new:
        messages.success(request, f"Stored: {measurement}.")
    for warning in warnings:
        messages.warning(request, warning)
    return redirect("measurement", measurement.pk)


def shown(request: HttpRequest, form: ImportForm, context: dict[str, Any]) -> HttpResponse:
    named = {"form": form, "slos": Slo.objects.order_by("name"), "longest": LONGEST_REASON, "place": "measurements"}
    context |= {**named, "largest": LARGEST_UPLOAD // 2**20}
    response = render(request, "pages/measurements_import.html", context, status=400 if form.errors else 200)
    add_never_cache_headers(response)
    return response


# --- the preview --------------------------------------------------------------------------------------------------
def previewed(found: Judged) -> dict[str, Any]:
    """The sweeps, the chosen one's stages and chart, and what storing it would say."""
    count = len(found.judgements)
    number = found.asked.sweep if count > 1 else 1
    chosen = found.judgements[number - 1] if number and number <= count else None
    return {
        "found": found,
        "sweeps": [(place, title(row.sweep.setting), row) for place, row in enumerate(found.judgements[:MOST_SWEEPS], start=1)],
        "more": max(0, count - MOST_SWEEPS),
        "number": number,
        "chosen": chosen,
        "rows": stage_rows_of(chosen.sweep.stages, found.slo, chosen.chosen) if chosen else [],
        "figure": figure_of(found, [chosen] if chosen else found.judgements[:MOST_CURVES]),
        "skipped": (*found.imported.skipped, *found.imported.unread),
        "carried": packed(found.imported),
        "command": command_of(found),
        **_would_store(found, chosen),
    }


def _would_store(found: Judged, chosen: Judgement | None) -> dict[str, Any]:
    if chosen is None or found.asked.profile is None:
        return {"row": None, "warnings": []}
    try:
        row, warnings = would_store(found)
    except ValidationError as error:
        return {"row": None, "warnings": error.messages}
    return {"row": row, "warnings": warnings}


def figure_of(found: Judged, judgements: Sequence[Judgement]) -> dict[str, Any] | None:
    curves = [
        Curve(
            name=title(row.sweep.setting),
            rows=stage_rows_of(row.sweep.stages, found.slo, row.chosen),
            slo=found.slo,
            replicas=found.replicas,
            max_concurrency=row.measured.max_concurrency if row.measured else None,
        )
        for row in judgements
    ]
    return sweep_figure(curves) if any(curve.points for curve in curves) else None


def command_of(found: Judged) -> str:
    """The same act as a command, once a profile is named."""
    asked = found.asked
    if asked.profile is None:
        return ""
    given = [*(file.name for file in found.imported.files), "--model", asked.profile.model.name, "--profile", asked.profile.name]
    for name in ("slo", "replicas", "sweep", "concurrency"):
        if value := getattr(asked, name):
            given += [f"--{name}", str(value)]
    return f'manage.py bench_import {shlex.join(given)} --reason "…"'


# --- what is carried from the preview to the act -------------------------------------------------------------------
def packed(imported: Imported) -> str:
    """The sweeps as they were read, signed: nobody can put figures in between. Nothing of the files is kept here."""
    document = {
        "sweeps": [evidence_of(Judgement(sweep=sweep, measured=None, why=""), slo=None) for sweep in imported.sweeps],
        "skipped": [[row.where, row.why] for row in imported.skipped],
        "unread": [[row.where, row.why] for row in imported.unread],
        "files": [[file.name, file.sha256] for file in imported.files],
    }
    return signing.dumps(document, salt=SALT, compress=True)


def carried(text: str) -> Imported:
    try:
        document = signing.loads(text, salt=SALT)
    except signing.BadSignature:
        raise ValidationError({"file": "What was looked at cannot be told any more: choose the files again."}) from None
    sweeps: list[Sweep] = [found for evidence in document["sweeps"] if (found := sweep_of(evidence)) is not None]
    return Imported(
        sweeps=tuple(sweeps),
        skipped=tuple(Skipped(where=where, why=why) for where, why in document["skipped"]),
        unread=tuple(Skipped(where=where, why=why) for where, why in document["unread"]),
        files=tuple(ReadFile(name=name, sha256=digest) for name, digest in document["files"]),
    )
