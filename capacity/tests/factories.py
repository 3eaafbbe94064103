"""Rows for tests, one builder for each kind. What a test does not name is made up and unique; rows are written as they are."""

from __future__ import annotations

from itertools import count
from typing import Any

from capacity.models import Brake, LanguageModel, Lease, Measurement, Node, PoolSettings, Profile
from quotas.models import Pool, Scope, ScopeEdge

_numbers = count(1)


def _name(kind: str) -> str:
    return f"{kind}-{next(_numbers)}"


def make_pool(name: str | None = None, **settings: Any) -> Pool:
    """A pool with its settings and its lease; keyword arguments are fields of the settings."""
    pool = Pool.objects.create(name=name or _name("pool"))
    PoolSettings.objects.create(pool=pool, **settings)
    Lease.objects.create(pool=pool)
    Brake.objects.create(pool=pool)
    return pool


def make_scope(name: str | None = None, *parents: Scope, funding: Scope | None = None) -> Scope:
    """A scope under its parents, in their order; `funding` is the one that is marked."""
    scope = Scope.objects.create(name=name or _name("scope"))
    for position, parent in enumerate(parents):
        ScopeEdge.objects.create(child=scope, parent=parent, position=position, is_funding=parent == funding)
    return scope


def make_node(name: str | None = None, *, pool: Pool | None = None, **fields: Any) -> Node:
    """A node that offers 8 units of `sim`."""
    fields.setdefault("resources", {"sim": 8})
    return Node.objects.create(name=name or _name("node"), pool=pool or make_pool(), **fields)


def make_model(name: str | None = None, *, pool: Pool | None = None, scope: Scope | None = None, **fields: Any) -> LanguageModel:
    """A model in mode `auto` from 1 replica up, without profiles."""
    fields.setdefault("mode", LanguageModel.Mode.AUTO)
    return LanguageModel.objects.create(name=name or _name("model"), pool=pool or make_pool(), scope=scope, **fields)


def make_profile(model: LanguageModel | None = None, name: str | None = None, **fields: Any) -> Profile:
    """A profile of one unit of `sim` on one host."""
    fields.setdefault("resource", "sim")
    return Profile.objects.create(model=model or make_model(), name=name or _name("profile"), **fields)


def make_measurement(profile: Profile | None = None, **fields: Any) -> Measurement:
    """A current measurement: 10 requests in flight, 100 tokens/s."""
    made = {"max_concurrency": 10, "tokens_per_second": 100, "status": Measurement.Status.CURRENT, **fields}
    return Measurement.objects.create(profile=profile or make_profile(), **made)
