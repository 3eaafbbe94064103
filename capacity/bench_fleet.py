"""A made-up fleet of any size for `make bench`: the same seed gives the same snapshot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random

from capacity.domain.types import Measurement, Model, Node, Profile, Replica, Snapshot
from quotas.domain.types import Quota, Scope

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
DEVICES = 8
FANOUT = 10


def make_snapshot(models: int, replicas: int, scopes: int, seed: int = 1) -> Snapshot:
    """`models` with two profiles each, `replicas` spread evenly over them, and a tree of `scopes` ten wide with some second
    parents; a node in twenty is free, so that some models find room and some do not."""
    random = Random(seed)  # noqa: S311 - a fleet to time, not a secret
    rows = _scopes(scopes, random)
    names = [f"model-{number:05}" for number in range(models)]
    nodes = [Node(name=f"n{number:05}", resources={"gpu/h100": DEVICES}) for number in range(replicas // DEVICES * 21 // 20 + 1)]
    return Snapshot(
        at=AT,
        nodes=tuple(nodes),
        models=tuple(_model(name, rows, random) for name in names),
        profiles=tuple(
            Profile(model=name, name=profile, resource="gpu/h100", units=1, priority=rank)
            for name in names
            for rank, profile in enumerate(("small", "large"))
        ),
        measurements=tuple(
            Measurement(model=name, profile=profile, max_concurrency=10 * rank, tokens_per_second=Fraction(300 * rank))
            for name in names
            for rank, profile in enumerate(("small", "large"), start=1)
        ),
        replicas=tuple(_replica(number, names, nodes, random) for number in range(replicas)),
        scopes=tuple(rows),
        quotas=tuple(Quota(scope=row.name, target="gpu", limit=replicas) for row in rows[: scopes // 10]),
    )


def _scopes(count: int, random: Random) -> list[Scope]:
    rows = []
    for number in range(count):
        parents = [f"s{number // FANOUT}"] if number else []
        other = f"s{random.randrange(number)}" if number > FANOUT and random.random() < 0.1 else None
        if other is not None and other not in parents:
            parents.append(other)
        rows.append(Scope(name=f"s{number}", parents=tuple(parents), funding_parent=parents[0] if parents else None))
    return rows


def _model(name: str, scopes: list[Scope], random: Random) -> Model:
    return Model(
        name=name,
        scope=random.choice(scopes).name if scopes else None,
        priority=random.randrange(3),
        min_replicas=1,
        held_requests=random.choice((0, 0, 0, 900)),
    )


def _replica(number: int, models: list[str], nodes: list[Node], random: Random) -> Replica:
    return Replica(
        name=f"r{number:06}",
        model=models[number % len(models)],
        profile=random.choice(("small", "large")),
        nodes=(nodes[number // DEVICES].name,),
        state=random.choices(("ready", "starting", "unready", "draining"), weights=(997, 1, 1, 1))[0],
        since=AT - timedelta(seconds=random.randrange(60, 800)),
        in_flight=random.randrange(11),
        sampled_at=AT - timedelta(seconds=random.randrange(40)),
    )
