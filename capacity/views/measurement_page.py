"""One measurement: what it says, rests on, and since when; accepting an outdated one; and several laid over each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from quotas.services.rows import LONGEST_REASON

from .. import services
from ..csv_cells import csv_lines
from ..domain.measurement.evidence import slo_of
from ..domain.measurement.moment import moment_of, readable
from ..domain.measurement.types import LATENCIES, SHOWN
from ..exported import hints_of
from ..models import Measurement, Replica
from ..sweep_charts import Curve, sweep_figure
from ..sweep_details import level_details, sweep_facts
from ..sweep_rows import StageRow, replicas_of, stage_rows
from .live import live

HISTORY_SHOWN: Final = 20
OTHERS_SHOWN: Final = 50
FEWEST, MOST = 2, 5


class AcceptForm(forms.Form):
    reason = forms.CharField(
        max_length=LONGEST_REASON, error_messages={"required": "Say why an outdated measurement is good again."}
    )


def visible_measurement(request: HttpRequest, pk: int) -> Measurement:
    seen = Measurement.objects.visible_to(request.user)  # type: ignore[misc]
    return get_object_or_404(seen.select_related("profile__model__slo", "profile__model__pool", "slo"), pk=pk)


@live
def measurement_page(request: HttpRequest, pk: int) -> HttpResponse | StreamingHttpResponse:
    measurement = visible_measurement(request, pk)
    rows = stage_rows(measurement.evidence)
    if request.GET.get("format") == "csv":
        return stages_csv(measurement, rows)
    return shown(request, measurement, rows, AcceptForm())


@require_http_methods(["POST"])
def measurement_accept(request: HttpRequest, pk: int) -> HttpResponse:
    measurement = visible_measurement(request, pk)
    if not request.user.may_operate:  # type: ignore[union-attr]
        raise PermissionDenied("Operators accept measurements.")
    form = AcceptForm(request.POST)
    if form.is_valid():
        try:
            services.measurement_accept(measurement, actor=request.user, reason=form.cleaned_data["reason"])  # type: ignore[arg-type]
        except ValidationError as error:
            form.add_error(None, error.messages)  # type: ignore[arg-type]
            measurement.refresh_from_db()
        else:
            messages.success(request, f"It is in force ({measurement.status_word}), for the profile as it is now.")
            return redirect("measurement", measurement.pk)
    return shown(request, measurement, stage_rows(measurement.evidence), form)


def shown(request: HttpRequest, measurement: Measurement, rows: Sequence[StageRow], form: AcceptForm) -> HttpResponse:
    same = Measurement.objects.filter(profile=measurement.profile)
    in_use = services.in_force(measurement.profile)
    same_profile = list(same.select_related("slo").order_by("-measured_at", "-id")[:OTHERS_SHOWN])
    context: dict[str, Any] = {
        "measurement": measurement,
        "rows": rows,
        "facts": [*facts(measurement.evidence), *sweep_facts(measurement.evidence)],
        "details": level_details(measurement.evidence),
        "files": files(measurement.evidence),
        "is_dated": moment_of(hints_of(measurement.evidence)) is not None,
        "imported_at": imported_at(measurement),
        "why": _text(measurement.evidence, "why"),
        "slo_text": _text(measurement.evidence, "slo") or (measurement.slo.name if measurement.slo else ""),
        "replicas": replicas_of(measurement.evidence),
        "in_use": in_use is not None and in_use.pk == measurement.pk,
        "in_force": in_use,
        "replaces": services.replacing(measurement, in_use),
        "others": [(row, engine_version(row.evidence)) for row in same_profile],
        "running": Replica.objects.filter(profile=measurement.profile, gone_at__isnull=True).count(),
        "history": measurement.history.select_related("history_user").order_by("-history_date", "-history_id")[:HISTORY_SHOWN],
        "figure": sweep_figure([curve_of(measurement, rows)]) if rows else None,
        "form": form,
        "longest": LONGEST_REASON,
        "place": "measurements",
    }
    return render(request, "pages/measurement.html", context, status=400 if form.errors else 200)


def imported_at(measurement: Measurement) -> datetime | None:
    """When its files came; None where it came from no file, or nobody wrote down when."""
    if not files(measurement.evidence):
        return None
    found: datetime | None = measurement.history.order_by("history_date").values_list("history_date", flat=True).first()
    return found


def curve_of(measurement: Measurement, rows: Sequence[StageRow]) -> Curve:
    version = engine_version(measurement.evidence)
    name = f"{measurement.profile}, {f'{version}, ' if version else ''}{measurement.measured_at:%Y-%m-%d %H:%M}"
    return Curve(
        name=name,
        rows=rows,
        slo=slo_of(measurement.evidence),
        replicas=replicas_of(measurement.evidence),
        max_concurrency=measurement.max_concurrency,
    )


# --- evidence -----------------------------------------------------------------------------------------------------
SAID: Final = {
    "tool": "tool",
    "tool_version": "its version",
    "model": "model, as the file names it",
    "engine": "engine",
    "engine_version": "engine version",
    "hardware": "hardware",
    "input_tokens": "input tokens of a request",
    "output_tokens": "output tokens of a request",
    "dataset": "dataset",
    "variant": "variant",
}


def facts(evidence: object) -> list[tuple[str, str]]:
    """What the sweep was made with, in words; what nobody said is left out."""
    setting = evidence.get("setting") if isinstance(evidence, dict) else None
    if not isinstance(setting, dict):
        return []
    hints = setting.get("hints")
    told = [(words, setting.get(name)) for name, words in SAID.items()]
    told += [(name, readable(str(name), str(text))) for name, text in sorted(hints.items())] if isinstance(hints, dict) else []
    return [(str(words), str(value)) for words, value in told if value not in (None, "")]


def files(evidence: object) -> list[dict[str, Any]]:
    found = evidence.get("files") if isinstance(evidence, dict) else None
    return [file for file in found if isinstance(file, dict)] if isinstance(found, list) else []


def engine_version(evidence: object) -> str:
    setting = evidence.get("setting") if isinstance(evidence, dict) else None
    found = setting.get("engine_version") if isinstance(setting, dict) else None
    return str(found) if found else ""


def _text(evidence: object, name: str) -> str:
    found = evidence.get(name) if isinstance(evidence, dict) else None
    return found if isinstance(found, str) else ""


def stages_csv(measurement: Measurement, rows: Sequence[StageRow]) -> StreamingHttpResponse:
    """Every stage, one a line."""
    statistics = [f"{latency}_{name}_ms" for latency in LATENCIES for name in SHOWN]
    head = ("model", "profile", "in_flight", "asked", "requests", "errors", "seconds", "tokens_per_second", *statistics)
    lines = csv_lines((*head, "meets_slo", "flags", "where"), _cells(measurement, rows))
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="measurement-{measurement.pk}.csv"'
    return response


def _cells(measurement: Measurement, rows: Sequence[StageRow]) -> Iterator[tuple[Any, ...]]:
    named = (measurement.profile.model.name, measurement.profile.name)
    for row in rows:
        stage = row.stage
        counts = (row.in_flight, stage.asked, stage.requests, stage.errors, stage.seconds, stage.tokens_per_second)
        figures = (found.get(name) for _, found in row.latencies for name in SHOWN)
        yield (*named, *counts, *figures, row.outcome, " ".join(sorted(stage.flags)), stage.where)


# --- several ------------------------------------------------------------------------------------------------------
@live
def measurements_compare(request: HttpRequest) -> HttpResponse:
    """`?id=1&id=2`: two to five, each once."""
    asked = [int(text) for text in dict.fromkeys(request.GET.getlist("id")) if text.isdecimal() and len(text) < 18]
    seen = Measurement.objects.visible_to(request.user).select_related("profile__model", "slo")  # type: ignore[misc]
    by_key = seen.in_bulk(asked[:MOST])
    found = [by_key[pk] for pk in asked[:MOST] if pk in by_key]
    drawn = [curve_of(measurement, stage_rows(measurement.evidence)) for measurement in found]
    curves = [curve for curve in drawn if curve.points]
    context = {
        "found": [(row, engine_version(row.evidence), curve) for row, curve in zip(found, drawn, strict=True)],
        "missing": len(asked) - len(found) if len(asked) <= MOST else 0,
        "too_many": len(asked) > MOST,
        "too_few": len(found) < FEWEST,
        "figure": sweep_figure(curves) if curves else None,
        "place": "measurements",
    }
    return render(request, "pages/measurements_compare.html", context)
