"""One model: is it well, since when, what happens next; the chart; its replicas, profiles, decisions and actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.text import capfirst

from ..csv_cells import csv_lines
from ..models import Action, Decision, LanguageModel, Measurement, Profile, Replica, Sample
from ..outdated import outdated_of, waits_for
from ..samples import count_tested
from ..series import lines
from ..telling import Telling
from ..timerange import PRESETS, InvalidRange, TimeRange, default_since, parse_range
from .board import is_old, threshold_percent
from .demand import asked
from .ended import ended_by_themselves, ends_of
from .failed_start import failed_start
from .frame import frame_of
from .live import live
from .load_data import loads_of, replica_names, sentence, table, wire_figure
from .replica_rows import replica_rows
from .watch import watched
from .words import SHORT, UNKNOWING, UNWELL

MOST_REPLICAS = 200
DECISIONS_SHOWN = 12
ACTIONS_SHOWN = 12
CHANGES_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRow:
    """A profile in the order in which it is tried, and why it was passed over."""

    profile: Profile
    measurement: Measurement | None
    tokens_per_unit: float | None
    running: int
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The first words of the page, and since when they hold (None: unknown)."""

    level: str
    word: str
    since: datetime | None


def visible_model(request: HttpRequest, name: str) -> LanguageModel:
    found = LanguageModel.objects.visible_to(request.user).select_related("scope", "pool__settings")
    return get_object_or_404(found, name=name)


@live
def model_page(request: HttpRequest, name: str) -> HttpResponse | StreamingHttpResponse:
    model = visible_model(request, name)
    now = timezone.now()
    span, fault = read_range(request, model, now)
    if request.GET.get("format") == "csv":
        return load_csv(model, span)
    context = {**_facts(model, now, frame_of(request).telling), "span": span, "place": "models"}
    if not request.htmx:  # type: ignore[attr-defined]
        context |= _chart(request, model, span) | {"range_fault": fault, "presets": PRESETS}
    return render(request, "pages/model.html", context)


def read_range(request: HttpRequest, model: LanguageModel, now: datetime) -> tuple[TimeRange, str]:
    """The range that the address asks for; the default with a sentence where it cannot be read."""
    usual = default_since(model.created_at, now)
    try:
        return parse_range(request.GET.get("from"), request.GET.get("to"), now, usual), ""
    except InvalidRange as fault:
        return parse_range(usual, "now", now), f"{fault} The usual range is shown instead."


def _chart(request: HttpRequest, model: LanguageModel, span: TimeRange) -> dict[str, Any]:
    loads = loads_of(model, span)
    names = replica_names(loads)
    return {
        "figure": wire_figure(model, span, loads, names, frame_of(request).telling),
        "chart_sentence": sentence(loads, names, span),
        "chart_table": table(loads),
        "chart_is_empty": loads.is_empty,
    }


@live
def chart_json(request: HttpRequest, name: str) -> HttpResponse:
    """The figure alone, for a refresh or another range."""
    model = visible_model(request, name)
    span, fault = read_range(request, model, timezone.now())
    if fault:
        return JsonResponse({"error": fault}, status=400)
    loads = loads_of(model, span)
    names = replica_names(loads)
    figure = wire_figure(model, span, loads, names, frame_of(request).telling)
    answer = {"figure": figure, "sentence": sentence(loads, names, span), "seen": frame_of(request).seen}
    return JsonResponse(answer, json_dumps_params={"separators": (",", ":")})


def load_csv(model: LanguageModel, span: TimeRange) -> StreamingHttpResponse:
    """Every reading of the range, one a line."""
    loads = loads_of(model, span)
    names = replica_names(loads)
    head = ("time_utc", "model", "replica", "in_flight", "measured_concurrency", "load_percent", "note")
    rows = (
        (_utc(at), model.name, names.get(replica, ""), in_flight, capacity, None if share is None else round(share, 2), note)
        for at, replica, in_flight, capacity, share, tested in lines(loads)
        for note in ["under test" if tested else ""]
    )
    response = StreamingHttpResponse(csv_lines(head, rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="load.csv"'
    return response


def _utc(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _facts(model: LanguageModel, now: datetime, telling: Telling) -> dict[str, Any]:
    sample = Sample.objects.filter(model=model).order_by("-at").first()
    decisions = telling.rows(Decision.objects.filter(model=model)[:DECISIONS_SHOWN])
    present = Replica.objects.filter(model=model, gone_at__isnull=True)
    replicas = telling.rows(present.select_related("profile").order_by("name")[:MOST_REPLICAS])
    newest = decisions[0] if decisions else None
    threshold = threshold_percent(model)
    outdated, ended = outdated_of(model, replicas), ended_by_themselves(model, now)
    return {
        "model": model,
        "sample": sample,
        "under_test": count_tested(bytes(sample.replicas)) if sample else 0,
        "is_old": sample is not None and is_old(sample.at, now),
        "asked": capfirst(asked(sample)) if sample else "",
        "threshold": threshold,
        "decision": newest,
        "health": _health(model, newest, sample),
        "last_change": _last_change(model, telling),
        "decisions": decisions,
        "replicas": replica_rows(replicas, sample, now),
        "outdated": outdated,
        "outdated_waits": waits_for(outdated, model, newest),
        "profiles": _profile_rows(model, replicas, newest),
        "actions": list(Action.objects.filter(model=model)[:ACTIONS_SHOWN]),
        "changes": _changes(model),
        "watch": watched(model, now),
        "failed": failed_start(model, now),
        "ended": ended,
        "ends": ends_of(ended),
    }


def _health(model: LanguageModel, newest: Decision | None, sample: Sample | None) -> Health:
    if newest is None:
        return Health(level="unknown", word="Not decided yet", since=None)
    if newest.is_withheld:
        return Health(level="warn", word="Withheld", since=newest.at)
    if newest.reason in UNWELL:
        return Health(level=_level(newest.reason), word=_word(newest), since=newest.at)
    if sample is not None and sample.demand_low > 0 and not sample.ready:
        return Health(level="bad", word="Short", since=newest.at)  # "not measured" may hold what nobody serves
    troubled = Decision.objects.filter(model=model, reason__in=UNWELL).order_by("-at", "-id").first()
    first = troubled or Decision.objects.filter(model=model).order_by("at", "id").first()
    since = first.seen_until if troubled and first else first.at if first else None
    return Health(level="good", word="Well", since=since)


def _level(reason: str) -> str:
    if reason in UNKNOWING or reason == "paused":
        return "unknown"
    return "bad" if reason in SHORT else "accent"


def _word(decision: Decision) -> str:
    if decision.reason == "paused":
        return "Paused"
    if decision.reason in UNKNOWING:
        return "Unknown"
    return "Short" if decision.reason in SHORT else "Being changed"


def _last_change(model: LanguageModel, telling: Telling) -> Decision | None:
    found = Decision.objects.filter(model=model, outcome__in=("add", "remove"), count__gt=0, is_advice=False)
    return next(iter(telling.rows(found[:1])), None)


def _profile_rows(model: LanguageModel, replicas: Iterable[Replica], newest: Decision | None) -> list[ProfileRow]:
    profiles = list(Profile.objects.filter(model=model))
    used: dict[int, Measurement] = {}
    for measurement in Measurement.objects.filter(profile__in=profiles).best_first():
        used.setdefault(measurement.profile_id, measurement)
    counts: dict[int, int] = {}
    for replica in replicas:
        counts[replica.profile_id] = counts.get(replica.profile_id, 0) + 1
    rows = [_profile_row(profile, used.get(profile.pk), counts.get(profile.pk, 0), newest) for profile in profiles]
    return sorted(rows, key=_tried)


def _tried(row: ProfileRow) -> tuple[Any, ...]:
    """Active first; unable ones last; then priority; measured before unmeasured; tokens a unit, concurrency, name."""
    known = row.measurement
    concurrency = known.max_concurrency if known else -1
    return (
        row.profile.state != Profile.State.ACTIVE,
        concurrency == 0,
        -row.profile.priority,
        known is None,
        -(row.tokens_per_unit or 0),
        -concurrency,
        row.profile.name,
    )


def _profile_row(profile: Profile, measurement: Measurement | None, running: int, newest: Decision | None) -> ProfileRow:
    units = profile.units * profile.hosts
    return ProfileRow(
        profile=profile,
        measurement=measurement,
        tokens_per_unit=float(measurement.tokens_per_second) / units if measurement else None,
        running=running,
        note=_passed_over(profile, measurement, newest.limited_by if newest else []),
    )


def _passed_over(profile: Profile, measurement: Measurement | None, limited_by: Iterable[Mapping[str, Any]]) -> str:
    """Why it is not chosen: its own state first, then what stopped the last decision."""
    if profile.state != Profile.State.ACTIVE:
        return profile.get_state_display()
    if measurement is None:
        return "started only for the floor or a wake"
    if measurement.max_concurrency == 0:
        return "cannot meet the SLO"
    for limit in limited_by:
        if limit.get("kind") == "backoff" and limit.get("profile") == profile.name:
            return f"backs off until {str(limit.get('until'))[11:16]}"
        if limit.get("kind") == "room" and limit.get("resource") == profile.resource:
            return f"no room: {limit.get('free')} free, {limit.get('largest_free')} on one node"
        if limit.get("kind") == "limit" and limit.get("target") == profile.resource:
            return f"at the limit of {limit.get('scope')}: {limit.get('used')} of {limit.get('limit')}"
    return ""


def _changes(model: LanguageModel) -> list[dict[str, Any]]:
    """The last edits of the model, its profiles and measurements: who, what, why."""
    sources = (
        ("model", LanguageModel.history.filter(id=model.pk)),
        ("profile", Profile.history.filter(model_id=model.pk)),
        ("measurement", Measurement.history.filter(profile__model_id=model.pk)),
        ("engine", Replica.history.filter(model_id=model.pk)),
    )
    kinds = {"+": "created", "~": "edited", "-": "deleted"}
    of_engine = {"+": "registered", "~": "forgotten", "-": "deleted"}
    found = [
        {
            "at": row.history_date,
            "who": row.history_user,
            "what": f"{what} {(of_engine if what == 'engine' else kinds)[row.history_type]}",
            "why": row.history_change_reason,
        }
        for what, rows in sources
        for row in rows.select_related("history_user").order_by("-history_date", "-history_id")[:CHANGES_SHOWN]
    ]
    return sorted(found, key=lambda row: row["at"], reverse=True)[:CHANGES_SHOWN]
