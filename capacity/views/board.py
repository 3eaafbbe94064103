"""Models with what is known of each now: newest sample, decision, last hour. A constant number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from django.conf import settings
from django.db.models import Case, F, FloatField, OuterRef, Subquery, Value, When

from ..models import Decision, LanguageModel, Sample
from ..samples import count_tested, has_unread

HOUR = timedelta(hours=1)
NO_CAPACITY = 1e9  # sorts demand on no capacity above every share


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A model on a list. `spark`: (share of the last hour, load %) a sample."""

    model: LanguageModel
    sample: Sample | None
    decision: Decision | None
    threshold_percent: float
    is_old: bool
    spark: Sequence[tuple[float, float | None]] = ()

    @property
    def load_percent(self) -> float | None:
        return None if self.sample is None or self.is_old else known_percent(self.sample)

    @property
    def load_word(self) -> str:
        """What stands in a bar's place where there is no share."""
        if self.sample is None:
            return "no pass yet"
        return "no reading" if self.is_old else unknown_words(self.sample)

    @property
    def under_test(self) -> int:
        """Replicas that sweeps have to themselves: beside the ready ones, not among them."""
        return count_tested(bytes(self.sample.replicas)) if self.sample else 0

    @property
    def headroom(self) -> int | None:
        """Requests in flight that still fit what is ready; None while not all of them are known."""
        if self.sample is None or is_unknown(self.sample):
            return None
        return self.sample.capacity_ready - self.sample.demand_low


def is_unknown(sample: Sample) -> bool:
    """Whether what is asked of it is only partly known: the demand has no bound, or a ready replica had no reading."""
    return sample.demand_high is None or has_unread(bytes(sample.replicas))


def known_percent(sample: Sample) -> float | None:
    """Its share of the measured capacity, None where it is unknown or where nothing is ready for what is asked."""
    return None if is_unknown(sample) else load_percent(sample.demand_low, sample.capacity_ready)


def unknown_words(sample: Sample) -> str:
    """What stands in place of the share that `known_percent` does not have."""
    if not is_unknown(sample):
        return "no capacity"
    return f"unknown, at least {sample.demand_low:,}" if sample.demand_low else "unknown"


def load_percent(demand: float, capacity: float) -> float | None:
    """No demand is 0 %; demand on no capacity has no share."""
    if capacity:
        return 100 * demand / capacity
    return None if demand else 0.0


def threshold_percent(model: LanguageModel) -> float:
    """The share that the rest must stay under: the model's own, else its pool's."""
    pool_settings = getattr(model.pool, "settings", None)
    text = model.scale_down_fraction or (pool_settings.scale_down_fraction if pool_settings else "0.70")
    return float(100 * Fraction(text))


def ordered(models: Any) -> Any:
    """The most loaded first; models that no pass has seen last."""
    newest = Sample.objects.filter(model=OuterRef("pk")).order_by("-at")
    share = Case(
        When(capacity_ready__gt=0, then=100.0 * F("demand_low") / F("capacity_ready")),
        When(demand_low=0, then=Value(0.0)),
        default=Value(NO_CAPACITY),
        output_field=FloatField(),
    )
    load = Subquery(newest.annotate(share=share).values("share")[:1])
    return models.annotate(load=load).order_by(F("load").desc(nulls_last=True), "name")


def rows(models: Any, now: datetime, *, with_spark: bool = False) -> list[Row]:
    """One row a model, in the given order. `models`: a queryset, already cut to a page."""
    sample = Sample.objects.filter(model=OuterRef("pk")).order_by("-at").values("pk")[:1]
    decision = Decision.objects.filter(model=OuterRef("pk")).order_by("-at", "-id").values("pk")[:1]
    found = list(
        models.select_related("scope", "pool__settings").annotate(
            newest_sample=Subquery(sample), newest_decision=Subquery(decision)
        )
    )
    samples = Sample.objects.in_bulk([model.newest_sample for model in found if model.newest_sample])
    decisions = Decision.objects.in_bulk([model.newest_decision for model in found if model.newest_decision])
    sparks = last_hours([model.pk for model in found], now) if with_spark else {}
    return [_row(model, samples, decisions, sparks, now) for model in found]


def _row(model: Any, samples: dict[int, Sample], decisions: dict[int, Decision], sparks: dict[int, Any], now: datetime) -> Row:
    sample = samples.get(model.newest_sample)
    return Row(
        model=model,
        sample=sample,
        decision=decisions.get(model.newest_decision),
        threshold_percent=threshold_percent(model),
        is_old=sample is not None and is_old(sample.at, now),
        spark=sparks.get(model.pk, ()),
    )


def is_old(at: datetime, now: datetime) -> bool:
    """Older than two intervals: shown grey, with its age."""
    return (now - at).total_seconds() > 2 * settings.PASS_SECONDS + 1


def last_hours(model_ids: Iterable[int], now: datetime) -> dict[int, list[tuple[float, float | None]]]:
    """Model → (share of the last hour, load %), with an unknown where more than two intervals lie between samples."""
    start = now - HOUR
    found = Sample.objects.filter(model__in=list(model_ids), at__gte=start).order_by("at")
    lines: dict[int, list[tuple[float, float | None]]] = defaultdict(list)
    gap = 2 * settings.PASS_SECONDS / HOUR.total_seconds() * 1.2
    for model, at, demand, high, capacity in found.values_list("model_id", "at", "demand_low", "demand_high", "capacity_ready"):
        line, position = lines[model], (at - start) / HOUR
        if line and position - line[-1][0] > gap:
            line.append((line[-1][0], None))
        line.append((position, None if high is None else load_percent(demand, capacity)))
    return lines
