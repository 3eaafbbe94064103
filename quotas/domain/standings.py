"""How each scope stands in each class after a pass: what it holds, and by what right."""

from __future__ import annotations

from collections.abc import Iterable

from quotas.domain.ledger import Ledger
from quotas.domain.types import Standing, covers

Key = tuple[str, str]
"""Scope and class."""


def standings_of(ledger: Ledger) -> tuple[Standing, ...]:
    """Scopes below which something is held, wanted or owed, by scope and class."""
    if ledger.capacity is None:
        return ()
    held: dict[Key, int] = {}
    used: dict[Key, int] = {}
    within: dict[Key, int] = {}
    entitled: dict[Key, int] = {}
    wanted: dict[Key, int] = {}
    for model, claim in ledger.claims.items():
        if claim.scope is None:
            continue
        above = ledger.policy.tenancy.ancestors(claim.scope)
        funding = ledger.policy.tenancy.funding_line(claim.scope)
        for resource in ledger.classes_of(model):
            using, own = ledger.using(model, resource), ledger.entitlement(model, resource)
            _add(held, above, resource, ledger.held(model, resource))
            _add(used, funding, resource, using)
            _add(within, funding, resource, min(using, own))
            _add(entitled, funding, resource, own)
            _add(wanted, funding, resource, max(using, ledger.wanted(model, resource)))
    over = _over(ledger)
    found = []
    for scope, resource in sorted({*held, *wanted}):
        key = (scope, resource)
        assured = ledger.policy.entitlements(resource, ledger.capacity.get(resource, 0)).assured(scope)
        inside = within.get(key, 0)
        standing = Standing(
            scope=scope,
            resource=resource,
            held=held.get(key, 0),
            firm=min(inside, assured),
            lent=inside - min(inside, assured),
            burst=used.get(key, 0) - inside,
            entitled=entitled.get(key, 0),
            wanted=wanted.get(key, 0),
            over_by=max((by for row, by in over if row[0] == scope and covers(row[1], resource)), default=0),
        )
        found.append(standing)
    return tuple(found)


def _add(sums: dict[Key, int], scopes: Iterable[str], resource: str, units: int) -> None:
    for scope in scopes:
        sums[scope, resource] = sums.get((scope, resource), 0) + units


def _over(ledger: Ledger) -> list[tuple[Key, int]]:
    """(scope, target) of each row on a class that is passed by what is held, and by how much."""
    return [
        ((row.scope, row.target), ledger.used(row) - row.limit)
        for row in ledger.limits
        if row.limit is not None and row.model is None and ledger.used(row) > row.limit
    ]
