"""A pool of any size in the database, as it is in the middle of a calm day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product

from capacity.models import Brake, LanguageModel, Lease, Measurement, Node, PoolSettings, Profile, Replica, Sample
from capacity.samples import pack
from quotas.models import CapacityQuota, Pool, Scope, ScopeEdge

DEVICE = "gpu/h100"
CAPACITY = 10
INTERVAL = timedelta(seconds=15)
PROFILES = ("small", "large")
BATCH = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRows:
    """The rows of a pool; `replicas` run in turn on its nodes, `models` each under a scope of its own below one of ten."""

    pool: Pool
    nodes: Sequence[Node]
    models: Sequence[LanguageModel]
    profiles: Sequence[Profile]
    replicas: Sequence[Replica]


def make_pool_rows(name: str, now: datetime, *, models: int, replicas_each: int, nodes: int) -> PoolRows:
    """A pool named `name` that has been watched without a gap for a day, its replicas on the first profile of their model."""
    day = now - timedelta(days=1)
    pool = Pool.objects.create(name=name)
    PoolSettings.objects.create(pool=pool)
    Lease.objects.create(pool=pool, last_pass_at=now - INTERVAL, unbroken_since=day)
    Brake.objects.create(pool=pool)
    scopes = _scopes(name, models, pool)
    hosts = _nodes(name, nodes, models * replicas_each, pool, now)
    made = LanguageModel.objects.bulk_create(
        LanguageModel(name=f"{name}-model-{n:05}", pool=pool, scope=scopes[n], mode="auto", max_replicas=50, created_at=day)
        for n in range(models)
    )
    profiles = _profiles(made, day)
    rows = _replicas(pool, profiles[: len(made)], hosts, replicas_each, now - timedelta(hours=3))
    return PoolRows(pool=pool, nodes=hosts, models=made, profiles=profiles, replicas=rows)


def _scopes(name: str, leaves: int, pool: Pool) -> list[Scope]:
    """One scope a model, ten teams above them, an organisation above the teams; limits at all of them that do not bind."""
    top = Scope.objects.create(name=f"{name}-org")
    teams = Scope.objects.bulk_create(Scope(name=f"{name}-org/team-{n}") for n in range(10))
    scopes = Scope.objects.bulk_create(Scope(name=f"{teams[n % 10].name}/{n:05}") for n in range(leaves))
    pairs = [*((team, top) for team in teams), *((scope, teams[n % 10]) for n, scope in enumerate(scopes))]
    ScopeEdge.objects.bulk_create(ScopeEdge(child=child, parent=parent, position=0, is_funding=True) for child, parent in pairs)
    CapacityQuota.objects.bulk_create(
        CapacityQuota(scope=scope, pool=pool, target=DEVICE, limit=10**6) for scope in (top, *teams, *scopes)
    )
    return scopes


def _nodes(name: str, count: int, replicas: int, pool: Pool, now: datetime) -> list[Node]:
    units = -(-replicas * 12 // (10 * count))
    return Node.objects.bulk_create(
        Node(name=f"{name}-node-{n:03}", pool=pool, resources={DEVICE: units}, labels={"zone": "a"}, reported_at=now)
        for n in range(count)
    )


def _profiles(models: Sequence[LanguageModel], measured_at: datetime) -> list[Profile]:
    """Two a model, all first ones before all second ones; each with a current measurement."""
    profiles = Profile.objects.bulk_create(
        Profile(model=model, name=name, resource=DEVICE, units=1, template="simulator")
        for name, model in product(PROFILES, models)
    )
    Measurement.objects.bulk_create(
        Measurement(profile=profile, max_concurrency=CAPACITY, tokens_per_second=3_000, status="current", measured_at=measured_at)
        for profile in profiles
    )
    return profiles


def _replicas(pool: Pool, profiles: Sequence[Profile], nodes: Sequence[Node], each: int, since: datetime) -> list[Replica]:
    def row(number: int, profile: Profile, which: int) -> Replica:
        node = nodes[number % len(nodes)].name
        return Replica(
            name=f"{profile.model.name}-{which:02}",
            pool=pool,
            model=profile.model,
            profile=profile,
            nodes=[node],
            state="ready",
            since=since,
            url=f"http://{node}:8000",
            created_at=since,
            ready_at=since,
            seen_at=since,
        )

    pairs = enumerate(product(profiles, range(each)))
    return Replica.objects.bulk_create(row(number, profile, which) for number, (profile, which) in pairs)


def make_samples(rows: PoolRows, newest: datetime, count: int, in_flight: Callable[[int, int], int]) -> None:
    """`count` samples a model, the newest at `newest`. `in_flight`(pass from the oldest, replica's place in its model)."""
    places = _places(rows)
    made: list[Sample] = []
    for number in range(count):
        at = newest - (count - 1 - number) * INTERVAL
        made += [_sample(model, at, places[model.pk], lambda place, n=number: in_flight(n, place)) for model in rows.models]
        if len(made) >= BATCH:
            Sample.objects.bulk_create(made)
            made.clear()
    Sample.objects.bulk_create(made)


def _places(rows: PoolRows) -> dict[int, list[int]]:
    """Model → its replicas' keys."""
    places: dict[int, list[int]] = {model.pk: [] for model in rows.models}
    for replica in rows.replicas:
        places[replica.model_id].append(replica.pk)
    return places


def _sample(model: LanguageModel, at: datetime, replicas: Sequence[int], in_flight: Callable[[int], int]) -> Sample:
    loads = [in_flight(place) for place in range(len(replicas))]
    count = len(replicas)
    return Sample(
        model=model,
        at=at,
        demand_low=sum(loads),
        demand_high=sum(loads),
        held_requests=0,
        capacity_ready=CAPACITY * count,
        rest_capacity=CAPACITY * (count - 1),
        ready=count,
        wanted=count,
        tokens_per_second=300.0 * count,
        replicas=pack((key, load, CAPACITY, 300.0, "ready") for key, load in zip(replicas, loads, strict=True)),
    )
