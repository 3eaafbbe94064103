"""A small fleet with a pass, as the tests of pages look at it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from capacity.models import Action, Decision, LanguageModel, Pass, Profile, Replica, Sample
from capacity.samples import pack
from capacity.tests.factories import make_measurement, make_model, make_node, make_pool, make_profile
from quotas.models import Membership, Scope, User

HOSTILE = '"><img src=x onerror=alert(1)>'
PASS_AT = timedelta(seconds=4)


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """A model of one profile with replicas, one sample and one decision, all seen by the newest pass."""

    pool: Any
    model: LanguageModel
    profile: Profile
    replicas: list[Replica]
    decision: Decision
    at: datetime


def make_person(name: str, *scopes: Scope, **fields: Any) -> User:
    person = User.objects.create_user(name, password="a-long-password", **fields)
    for scope in scopes:
        Membership.objects.create(user=person, scope=scope)
    return person


def make_fleet(
    name: str = "llama", *, pool: Any = None, scope: Any = None, loads: tuple[int | None, ...] = (6, 4), capacity: int = 10
) -> Fleet:
    pool = pool or make_pool()
    at = timezone.now() - PASS_AT
    model = make_model(name, pool=pool, scope=scope, created_at=at - timedelta(days=2))
    profile = make_profile(model, "sim1")
    make_measurement(profile, max_concurrency=capacity)
    replicas = [_replica(pool, model, profile, f"{name}/r{number}") for number in range(len(loads))]
    make_sample(model, at, list(zip(replicas, loads, strict=True)), capacity)
    decision = make_decision(model, at=at - timedelta(minutes=9), seen_until=at)
    Pass.objects.create(pool=pool, at=at, seconds=0.05, generation=1)
    make_node(f"node of {name}", pool=pool, reported_at=at)
    return Fleet(pool=pool, model=model, profile=profile, replicas=replicas, decision=decision, at=at)


def _replica(pool: Any, model: LanguageModel, profile: Profile, name: str) -> Replica:
    return Replica.objects.create(name=name, pool=pool, model=model, profile=profile, state="ready", nodes=["n1"])


def make_sample(model: LanguageModel, at: datetime, loads: list[tuple[Replica, int | None]], capacity: int) -> Sample:
    known = sum(load or 0 for _, load in loads)
    return Sample.objects.create(
        model=model,
        at=at,
        demand_low=known,
        demand_high=known,
        capacity_ready=capacity * len(loads),
        rest_capacity=capacity * (len(loads) - 1),
        ready=len(loads),
        wanted=len(loads),
        replicas=pack((replica.pk, load, capacity, None, "ready") for replica, load in loads),
    )


def make_decision(model: LanguageModel, **fields: Any) -> Decision:
    given = {
        "pool": model.pool,
        "at": timezone.now(),
        "seen_until": timezone.now(),
        "outcome": "hold",
        "reason": "rest_over_threshold",
        "numbers": {"demand_low": 10, "demand_high": 10, "capacity_ready": 20, "adds_above": 20, "removes_below": 7},
        "why": f"{model.name} keeps what it has.",
        **fields,
    }
    return Decision.objects.create(model=model, **given)


def make_action(decision: Decision, replica: Replica, **fields: Any) -> Action:
    given = {"op": "drain", "reason": decision.reason, "generation": 1, **fields}
    return Action.objects.create(pool=decision.pool, model=decision.model, decision=decision, replica_name=replica.name, **given)
