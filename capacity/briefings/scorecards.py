"""A model's recorded load and today's pool → its scorecard, and how much of its load is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from statistics import median
from typing import Any

import numpy as np
from django.conf import settings

from ..domain.scorecard import ASSUMED_START_SECONDS, WINDOW, Scorecard, Setup, Step, as_written, covered_seconds, scorecard
from ..domain.types import Node, Snapshot
from ..models import LanguageModel, Replica, Rollup
from ..rollup import BUCKET, BUCKET_SECONDS
from ..samples import STATES, UNDER_TEST
from ..series import ROLLED
from ..snapshot import Built

HELD = ("ready", "unready", "starting", "draining")
RUNNING = {STATES.index(state) for state in ("starting", "ready", "unready")}
TESTED = STATES.index(UNDER_TEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A scorecard with what it assumes: `start_seconds` is the median of the starts that were seen, `starts_seen` how many."""

    card: Scorecard
    start_seconds: int
    starts_seen: int


def card_of(model: LanguageModel, built: Built, now: datetime) -> Card:
    """The last 14 days of a model of the pool that `built` is of."""
    replicas = _replicas(model)
    rows = _rollups(model, now)
    steps = _steps(rows, replicas)
    seen = [seconds for row in replicas.values() if (seconds := row.start_seconds) is not None]
    own = {profile.name for profile in built.snapshot.profiles if profile.model == model.name}
    running = [(row.profile, row.nodes) for row in _running(rows, replicas) if row.profile in own]
    lasts = min(int(median(seen)) if seen else ASSUMED_START_SECONDS, _start_timeout(built.snapshot, model.name))
    snapshot = _one_model(built, model.name, steps, running)
    setup = Setup(snapshot=snapshot, running=running, start_seconds=lasts, step_seconds=BUCKET_SECONDS)
    key = (model.pk, steps[0].at if steps else None, steps[-1].at if steps else None, repr(setup))
    return Card(card=_card(_Asked(key, steps, setup)), start_seconds=lasts, starts_seen=len(seen))


class _Asked:
    """A card by what it is made of: rollups are written once and never again, so that their ends tell them."""

    def __init__(self, key: tuple[object, ...], steps: Sequence[Step], setup: Setup) -> None:
        self.key, self.steps, self.setup = key, steps, setup

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=8)
def _card(asked: _Asked) -> Scorecard:
    """Two weeks cost a second: the same card is not made again for the next look, until five more minutes are on record."""
    return scorecard(asked.steps, asked.setup)


def recorded(model: LanguageModel, now: datetime) -> timedelta:
    """How much of the model's load in the last 14 days is recorded, as its scorecard counts it."""
    if model.pk is None:
        return timedelta(0)
    return timedelta(seconds=covered_seconds(_steps(_rollups(model, now), {})))


def _start_timeout(snapshot: Snapshot, name: str) -> int:
    """The shortest of the model's profiles: a start that lasts longer would be ended time and again."""
    own = [profile.start_timeout_seconds for profile in snapshot.profiles if profile.model == name]
    setting = snapshot.settings.start_timeout_seconds
    return min((setting if seconds is None else seconds for seconds in own), default=setting)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReplicaRow:
    profile: str
    resource: str
    units: int
    nodes: tuple[str, ...]
    start_seconds: int | None


def _replicas(model: LanguageModel) -> dict[int, _ReplicaRow]:
    fields = ("pk", "profile__name", "profile__resource", "units", "profile__hosts", "nodes", "created_at", "ready_at")
    return {
        pk: _ReplicaRow(
            profile=profile,
            resource=resource,
            units=units * hosts,
            nodes=tuple(nodes),
            start_seconds=_start_seconds(created, ready),
        )
        for pk, profile, resource, units, hosts, nodes, created, ready in Replica.objects.filter(model=model).values_list(*fields)
    }


def _start_seconds(created_at: datetime, ready_at: datetime | None) -> int | None:
    """An adopted one was ready when it was first seen: that was no start."""
    return None if ready_at is None or ready_at <= created_at else int((ready_at - created_at).total_seconds())


Row = tuple[datetime, int, Mapping[str, Any], list[tuple[int, int]]]


def _rollups(model: LanguageModel, now: datetime) -> list[Row]:
    """(start, samples, totals, (replica, last state) each) of five minutes a row, oldest first."""
    found = Rollup.objects.filter(model=model, at__gte=now - WINDOW).order_by("at")
    rows = found.values_list("at", "samples", "totals", "replicas")
    return [(at, samples, totals, _seen(bytes(blob))) for at, samples, totals, blob in rows]


def _seen(blob: bytes) -> list[tuple[int, int]]:
    records = np.frombuffer(blob, dtype=ROLLED)
    return list(zip(records["replica"].tolist(), records["state"].tolist(), strict=True))


def _steps(rows: Iterable[Row], replicas: Mapping[int, _ReplicaRow]) -> list[Step]:
    """Stretches whose load was never known are left out."""
    steps: list[Step] = []
    before: tuple[datetime, int] | None = None
    serving: set[int] = set()
    for at, samples, totals, seen in rows:
        # a sweep's own replica is none of the model's; one that it took from service is held as before, and comes back
        taken = {key for key, state in seen if state == TESTED and key in serving}
        serving = {key for key, state in seen if state != TESTED} | taken
        last = int(totals["capacity_ready"][2])
        contiguous = before is not None and at - before[0] == BUCKET
        # as a step of the card has the capacity that it begins with
        capacity = min(last, int(totals["capacity_ready"][0]), before[1] if before and contiguous else last)
        before = (at, last)
        if totals["demand_high"] is not None:
            steps.append(_step(at, samples, totals, capacity, len(taken), _units(serving, replicas)))
    return steps


def _step(at: datetime, samples: int, totals: Mapping[str, Any], capacity: int, taken: int, units: Mapping[str, int]) -> Step:
    return Step(
        at=at,
        seconds=min(BUCKET_SECONDS, samples * settings.PASS_SECONDS),
        demand=int(totals["demand_low"][1]),
        demand_high=int(totals["demand_high"][1]),
        capacity=capacity,
        held=taken + sum(int(totals[name][2]) for name in HELD),
        units=units,
    )


def _units(serving: Iterable[int], replicas: Mapping[int, _ReplicaRow]) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    for key in serving:
        if key in replicas:
            found[replicas[key].resource] += replicas[key].units
    return found


def _running(rows: Sequence[Row], replicas: Mapping[int, _ReplicaRow]) -> list[_ReplicaRow]:
    """What ran in the first stretch whose load was known."""
    first = next((row for row in rows if row[2]["demand_high"] is not None), None)
    return [replicas[key] for key, state in first[3] if key in replicas and state in RUNNING] if first else []


def _one_model(built: Built, name: str, steps: Sequence[Step], running: Sequence[tuple[str, tuple[str, ...]]]) -> Snapshot:
    """The model alone in today's pool. Of quotas the limits of its scopes stand: what others used then is not on record."""
    snapshot = built.snapshot
    measurements = snapshot.measurements
    # a rest of removals raises the minimum of today's snapshot: it was not there all the time
    own = built.rows.models[name].min_replicas
    alone = replace(
        snapshot,
        at=steps[-1].at if steps else snapshot.at,
        models=tuple(replace(as_written(model), min_replicas=own) for model in snapshot.models if model.name == name),
        profiles=tuple(profile for profile in snapshot.profiles if profile.model == name),
        measurements=None if measurements is None else tuple(row for row in measurements if row.model == name),
        backoffs=(),
        replicas=(),
        quotas=tuple(replace(row, guarantee=None) for row in snapshot.quotas or () if row.limit is not None),
        scopes=snapshot.scopes or (),
    )
    return replace(alone, nodes=_nodes(built, alone, steps, running))


def _nodes(
    built: Built, alone: Snapshot, steps: Sequence[Step], running: Sequence[tuple[str, tuple[str, ...]]]
) -> tuple[Node, ...]:
    """Today's hosts, open and empty: for each profile the largest that carry its labels, no more than its load could take."""
    hosts = [
        Node(name=row.known.name, resources=row.known.resources, labels=row.known.labels) for row in built.rows.nodes.values()
    ]
    kept = {node for _, nodes in running for node in nodes}
    most = _most_replicas(alone, steps, len(running))
    for profile in alone.profiles:
        fit = [n for n in hosts if n.resources.get(profile.resource) and profile.selector.items() <= n.labels.items()]
        fit.sort(key=lambda n, resource=profile.resource: (-n.resources[resource], n.name))  # type: ignore[misc]
        kept.update(node.name for node in fit[: most * profile.hosts])
    return tuple(node for node in hosts if node.name in kept)


def _most_replicas(alone: Snapshot, steps: Sequence[Step], running: int) -> int:
    least = min((row.max_concurrency for row in alone.measurements or () if row.max_concurrency), default=1)
    peak = max((step.demand for step in steps), default=0)
    return -(-peak // least) + running + alone.models[0].min_replicas + 1
