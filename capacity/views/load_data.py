"""The rows of a model's chart: samples or rollups of a range, changes on the time axis, and the figure made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.conf import settings
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from django.urls import reverse

from .. import clock, series
from ..charts import Marker, compact, load_figure
from ..models import Decision, LanguageModel, Measurement, Profile, Replica, Rollup, Sample
from ..rollup import BUCKET_SECONDS
from ..series import Loads
from ..telling import Telling
from ..timerange import TimeRange
from .board import threshold_percent

MOST_CHANGES = 1000
TABLE_ROWS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A stretch of the range for those who cannot see the chart: lowest and highest load of any replica, and of the rest."""

    at: datetime
    lowest: float | None
    highest: float | None
    rest: float | None
    unread: bool
    tested: bool


def loads_of(model: LanguageModel, span: TimeRange) -> Loads:
    """Passes' samples for up to a day, five-minute means beyond."""
    if span.is_raw:
        rows = _rows(Sample.objects.filter(model=model), span, "demand_high", "rest_capacity", "replicas")
        return series.from_samples(rows, settings.PASS_SECONDS)
    rolled = [
        (at, _mean(totals, "demand_high"), _mean(totals, "rest_capacity"), blob)
        for at, totals, blob in _rows(Rollup.objects.filter(model=model), span, "totals", "replicas")
    ]
    return series.from_rollups(rolled, BUCKET_SECONDS)


def _rows(found: QuerySet[Any], span: TimeRange, *fields: str) -> list[tuple[Any, ...]]:
    """(epoch seconds, *fields) of the range. Times come as text: thousands of datetimes would cost more than the chart."""
    inside = found.filter(at__range=(span.start, span.end)).order_by("at").annotate(time=Cast("at", TextField()))
    rows = list(inside.values_list("time", *fields))
    return [(at, *row[1:]) for at, row in zip(series.epoch_seconds(row[0] for row in rows), rows, strict=True)]


def _mean(totals: Mapping[str, Any], name: str) -> float | None:
    known = totals.get(name)
    return known[0] if known else None


def replica_names(loads: Loads) -> dict[int, str]:
    return dict(Replica.objects.filter(pk__in=loads.replicas.tolist()).values_list("pk", "name"))


def wire_figure(
    model: LanguageModel, span: TimeRange, loads: Loads, names: Mapping[int, str], telling: Telling
) -> dict[str, Any]:
    """The chart's figure, small enough to stand in the page."""
    start, end = int(span.start.timestamp()), int(span.end.timestamp())
    figure = load_figure(
        loads,
        names=names,
        start=start,
        end=end,
        scale_down_percent=threshold_percent(model),
        markers=[*_decided(model, span, telling), *_edited(model, span)],
        group_url=_decisions_url(model) + "&from={start}&to={end}",
    )
    return compact(figure, start)


def _decisions_url(model: LanguageModel) -> str:
    # a name with braces must not be read as a place to fill in
    query = urlencode({"model": model.name}).replace("{", "%7B").replace("}", "%7D")
    return f"{reverse('decisions')}?{query}"


def _decided(model: LanguageModel, span: TimeRange, telling: Telling) -> Iterable[Marker]:
    rows = Decision.objects.filter(
        model=model, at__range=(span.start, span.end), outcome__in=("add", "remove"), count__gt=0, is_advice=False
    )
    for row in telling.rows(rows.order_by("-at")[:MOST_CHANGES]):
        kind = "add" if row.outcome == "add" else "remove"
        url = reverse("decision", args=[row.pk])
        yield Marker(at=int(row.at.timestamp()), kind=kind, count=row.count, text=row.why[:160], url=url)  # type: ignore[arg-type]


def _edited(model: LanguageModel, span: TimeRange) -> Iterable[Marker]:
    """Edits of the model and its profiles, and new measurements: their history rows."""
    sources = (
        (LanguageModel.history.filter(id=model.pk), "model edited"),
        (Profile.history.filter(model_id=model.pk), "profile edited"),
        (Measurement.history.filter(profile__model_id=model.pk), "measurement"),
    )
    url = reverse("model", args=[model.name]) + "#changes"
    for rows, words in sources:
        inside = rows.filter(history_date__range=(span.start, span.end)).order_by("-history_date")
        for moment, why in inside.values_list("history_date", "history_change_reason")[:MOST_CHANGES]:
            text = f"{words}: {why}" if why else words
            yield Marker(at=int(moment.timestamp()), kind="edit", count=0, text=text[:160], url=url)


def sentence(loads: Loads, names: Mapping[int, str], span: TimeRange) -> str:
    """What the chart shows, in one sentence."""
    if loads.is_empty:
        return "No pass has recorded this model in this range."
    if np.isnan(loads.percent).all():
        return "No replica had a load that can be told in this range."
    row, column = np.unravel_index(np.nanargmax(loads.percent), loads.percent.shape)
    peak = loads.percent[row, column]
    name = names.get(int(loads.replicas[row]), "a replica that is gone")
    moment = datetime.fromtimestamp(int(loads.at[column]), UTC)
    text = f"The busiest replica was {name}: {peak:,.0f} % of its measured concurrency at {clock.short(moment, span.now)} UTC"
    return f"{text}{_tested_words(loads)}{_unread_words(loads)}{_kind_words(span)}."


def _tested_words(loads: Loads) -> str:
    seconds = _lasting(loads, loads.tested.any(axis=0))
    return f"; a replica was under test for {clock.duration(seconds)} in all (dotted), of which nothing counts" if seconds else ""


def _lasting(loads: Loads, flags: Any) -> float:
    steps = np.append(np.diff(loads.at), int(loads.interval_seconds))
    return float(steps[flags].sum())


def _unread_words(loads: Loads) -> str:
    seconds = _lasting(loads, loads.unread)
    return f"; some reading was missing for {clock.duration(seconds)} in all (hatched)" if seconds else "; no reading was missing"


def _kind_words(span: TimeRange) -> str:
    return "" if span.is_raw else "; each point is the mean of five minutes"


def table(loads: Loads) -> list[TableRow]:
    """The range in equal stretches of rows."""
    parts = np.array_split(np.arange(len(loads.at)), min(TABLE_ROWS, len(loads.at))) if len(loads.at) else []
    return [_table_row(loads, part) for part in parts]


def _table_row(loads: Loads, part: Any) -> TableRow:
    percent, rest = loads.percent[:, part], loads.rest[part]
    known, known_rest = percent[~np.isnan(percent)], rest[~np.isnan(rest)]
    return TableRow(
        at=datetime.fromtimestamp(int(loads.at[part[0]]), UTC),
        lowest=float(known.min()) if known.size else None,
        highest=float(known.max()) if known.size else None,
        rest=float(known_rest.max()) if known_rest.size else None,
        unread=bool(loads.unread[part].any()),
        tested=bool(loads.tested[:, part].any()),
    )
