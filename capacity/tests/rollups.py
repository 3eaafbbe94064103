"""A recorded load, as rollups hold it."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from capacity.models import Rollup
from capacity.rollup import bucket_of, roll
from capacity.tests.pages import make_sample


def remember(model, demands, *, replicas=(), capacity=10, until=None):
    """A rollup of five minutes a demand, the last of them over by now."""
    until = bucket_of(until or timezone.now()) - timedelta(minutes=5 * len(demands))
    rows = []
    for number, demand in enumerate(demands):
        at = until + timedelta(minutes=5 * number)
        sample = make_sample(model, at, [(replica, demand) for replica in replicas], capacity)
        sample.demand_low = sample.demand_high = demand
        rows.append(Rollup(model=model, at=at, **{**roll([sample]), "samples": 20}))
        sample.delete()
    Rollup.objects.bulk_create(rows)
