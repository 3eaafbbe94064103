"""A model's page with a day of samples, as an operator gets it, chart included; and the figure of its chart alone."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import sin
from random import Random

from django.test import Client
from django.urls import reverse

from capacity.charts import Marker, compact, load_figure
from capacity.models import Action, Decision, LanguageModel, Pass
from capacity.series import Loads
from capacity.timerange import parse_range
from capacity.views.load_data import loads_of, replica_names
from quotas.models import User

from .pool_rows import CAPACITY, INTERVAL, PoolRows, make_pool_rows, make_samples
from .sizes import Sizes
from .timing import Figure, Timing, timed

CHANGES = 60


def measure(sizes: Sizes, now: datetime) -> list[Figure]:
    rows = make_day(sizes, now)
    model = rows.models[0]
    body, timing = page(model, sizes.page_runs)
    return [*page_figures(body, timing), chart_figure(model, now, sizes.chart_runs)]


def make_day(sizes: Sizes, now: datetime) -> PoolRows:
    """One model with a day of loads that rise and fall and flicker, changes spread over it, and a pass just now."""
    rows = make_pool_rows("day", now, models=1, replicas_each=sizes.page_replicas, nodes=4)
    random = Random(1)  # noqa: S311 - a load to draw, not a secret

    def in_flight(number: int, place: int) -> int:
        return max(0, round(CAPACITY * (0.75 + 0.3 * sin(number / 400 + place)) + random.gauss(0, 1)))

    make_samples(rows, now, sizes.page_samples, in_flight)
    _make_changes(rows, now, sizes.page_samples)
    Pass.objects.create(pool=rows.pool, at=now, seconds=0.2, generation=1)
    return rows


def _make_changes(rows: PoolRows, now: datetime, samples: int) -> None:
    steps = range(CHANGES)
    decisions = Decision.objects.bulk_create(
        _decision(rows, now - samples * INTERVAL * (step + 1) / (CHANGES + 1)) for step in steps
    )
    Action.objects.bulk_create(
        Action(
            pool=rows.pool,
            model=rows.models[0],
            decision=decision,
            op="start",
            replica_name=rows.replicas[0].name,
            profile_name=rows.profiles[0].name,
            reason=decision.reason,
            state="done",
            generation=1,
            created_at=decision.at,
        )
        for decision in decisions
    )


def _decision(rows: PoolRows, at: datetime) -> Decision:
    return Decision(
        pool=rows.pool,
        model=rows.models[0],
        at=at,
        seen_until=at + timedelta(minutes=5),
        outcome="add",
        reason="over_capacity",
        count=1,
        numbers={"demand_low": 130, "demand_high": 130, "capacity_ready": 128, "capacity_starting": 0, "adds_above": 128},
        why="130 requests in flight are more than the 128 that 13 ready replicas were measured to serve within the SLO.",
    )


def operator() -> Client:
    client = Client(headers={"host": "localhost"})
    client.force_login(User.objects.create(username="bench-operator", is_operator=True))
    return client


def page(model: LanguageModel, runs: int) -> tuple[bytes, Timing]:
    """The page with its last 24 hours, and what the server takes for it. The chart's figure stands in the page."""
    client, url = operator(), reverse("model", args=[model.name]) + "?from=now-24h&to=now"
    answers: list[bytes] = []

    def get() -> None:
        response = client.get(url)
        if response.status_code != 200:
            raise RuntimeError(f"{url} answered {response.status_code}")
        answers.append(response.content)

    timing = timed(get, runs)
    return answers[-1], timing


def page_figures(body: bytes, timing: Timing) -> Sequence[Figure]:
    kilobytes, packed = len(body) / 1000, len(gzip.compress(body)) / 1000
    return (
        Figure(
            name="model_page_p95_ms",
            value=timing.p95_ms,
            unit="ms",
            target=150,
            note=f"p95; median {timing.median_ms:.1f} ms {timing.words}",
        ),
        Figure(name="model_page_kb", value=kilobytes, unit="kB", target=250, note=f"{packed:.1f} kB gzipped"),
    )


def chart_figure(model: LanguageModel, now: datetime, runs: int) -> Figure:
    """From the arrays of the day to what goes over the wire."""
    span = parse_range("now-24h", "now", now)
    loads = loads_of(model, span)
    names = replica_names(loads)
    start, end = int(span.start.timestamp()), int(span.end.timestamp())
    timing = timed(lambda: draw(loads, names, start, end), runs)
    return Figure(name="chart_24h_ms", value=timing.median_ms, unit="ms", target=60, note=f"median {timing.words}")


def draw(loads: Loads, names: Mapping[int, str], start: int, end: int) -> object:
    markers = [Marker(at=at, kind="add", count=1, text="", url="/") for at in range(start, end, (end - start) // CHANGES)]
    return compact(load_figure(loads, names=names, start=start, end=end, scale_down_percent=70.0, markers=markers), start)
