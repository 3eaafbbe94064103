"""Where a gateway may send requests. Asked each second by every gateway: four queries, however large the pool."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone

from capacity.fleet_scrape import allowed_networks
from capacity.models import BenchRun, LanguageModel, Measurement, Profile, Replica
from capacity.observation.served_names import plain
from capacity.sources.address import text_fault


def endpoints_document(models: QuerySet[LanguageModel], now: datetime | None = None) -> dict[str, Any]:
    """`{"endpoints": [{"replica", "model", "url", "weight"}], "models": [{"name", "served_names"}]}`, by name.

    Ready replicas alone, without those that a sweep has to itself. `weight` is the measured concurrency in requests; a replica
    of an unmeasured profile weighs the smallest that was measured of its model, else 1. A weight of
    0 was measured: this replica keeps its SLO at no load at all.
    """
    names = {
        pk: {"name": name, "served_names": plain(aliases)}
        for pk, name, aliases in models.values_list("pk", "name", "served_names")
    }
    weights, smallest = _weights(models)
    ready = Replica.objects.filter(model__in=models, state=Replica.State.READY, gone_at=None).exclude(url="").order_by("name")
    ready = ready.exclude(pk__in=BenchRun.objects.holding(now or timezone.now()).order_by().values("replica"))
    rows = list(ready.values_list("name", "model_id", "profile_id", "url", "is_registered"))
    ours = {url for _, _, _, url, is_registered in rows if not is_registered}
    endpoints = [
        {"replica": replica, "model": names[model]["name"], "url": url, "weight": weights.get(profile, smallest.get(model, 1))}
        for replica, model, profile, url, is_registered in rows
        if not (is_registered and url in ours)  # registered at an address where one of ours has come up since
        if model in names  # a model that was made in between is in the next answer
        if text_fault(url, allowed_networks()) is None  # a gateway is never sent where a cloud hands out credentials
    ]
    return {"endpoints": endpoints, "models": sorted(names.values(), key=lambda row: row["name"])}


def _weights(models: QuerySet[LanguageModel]) -> tuple[dict[int, int], dict[int, int]]:
    """Profile → measured concurrency, and model → the smallest of its profiles that is above 0."""
    used = Measurement.objects.filter(profile=OuterRef("pk")).best_first()
    measured = Subquery(used.values("max_concurrency")[:1])
    rows = (
        Profile.objects.filter(model__in=models).order_by().annotate(measured=measured).values_list("pk", "model_id", "measured")
    )
    weights: dict[int, int] = {}
    smallest: dict[int, int] = {}
    for profile, model, concurrency in rows:
        if concurrency is None:
            continue
        weights[profile] = concurrency
        if concurrency > 0:
            smallest[model] = min(concurrency, smallest.get(model, concurrency))
    return weights, smallest
