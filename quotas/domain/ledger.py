"""The books of one pass: what is used under each limit, what each model is entitled to, and what must stay free for others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from quotas.domain.allocation import Allocation, Ask, Steps, units_of
from quotas.domain.clipping import Entitled, clip
from quotas.domain.types import Claim, LimitStop, Quota, ReservedStop, covers

if TYPE_CHECKING:
    from quotas.domain.policy import QuotaPolicy

Wishes = Mapping[str, Mapping[str, Steps]]
"""Model → class → replicas that it would start."""
Row = tuple[str, str]
"""Scope and target of a quota row."""


class Ledger:
    """Usage under every binding row; each model counts once for a row, however many paths lead to its scope.

    `capacity`: class → units on ready nodes; None where the nodes could not be read: then nobody is entitled to anything.
    """

    def __init__(
        self, policy: QuotaPolicy, claims: Iterable[Claim], charged: Mapping[str, str], capacity: Mapping[str, int] | None
    ) -> None:
        self.policy = policy
        self.capacity = capacity
        self._charged = charged
        self.claims = {claim.model: claim for claim in claims}
        self._limits: dict[Row, Quota] = {}
        self._used: dict[Row, int] = {}
        self._leaving: dict[Row, int] = {}
        self._coming: dict[str, int] = {}
        self._binding: dict[tuple[str, str], tuple[Quota, ...]] = {}
        self._allocations: dict[str, Allocation] = {}
        self._entitled: Entitled = {}
        self._wishes: Wishes = {}
        self._wanted: dict[tuple[str, str], int] = {}
        self._started: dict[str, dict[str, int]] = {}
        self._using: dict[tuple[str, str], int] = {}
        self._short: dict[str, dict[str, int]] = {}
        for scope in charged.values():
            for row in policy.limits_over(scope):
                self._used[row.scope, row.target] = 0
        for claim in self.claims.values():
            self._open(claim)

    def _open(self, claim: Claim) -> None:
        for row in self.policy.limits_over(claim.scope):
            key = (row.scope, row.target)
            self._limits[key] = row
            if row.model is None:
                held = _covered(row.target, claim.units)
                leaving = _covered(row.target, claim.leaving)
            else:
                own = row.model == claim.model
                held, leaving = (claim.replicas, claim.replicas_leaving) if own else (0, 0)
            self._used[key] = self._used.get(key, 0) + held
            self._leaving[key] = self._leaving.get(key, 0) + leaving
        for resource, units in claim.returning.items():
            self._coming[resource] = self._coming.get(resource, 0) + units
        for resource, steps in claim.using.items():
            self._using[claim.model, resource] = units_of(steps)

    # What is entitled to what

    def allocate(self, wishes: Wishes) -> None:
        """Share out what there is among what models use and wish for."""
        if self.capacity is None:
            return
        self._wishes = wishes
        asks: dict[str, list[Ask]] = {}
        for claim in self.claims.values():
            self._ask(claim, wishes.get(claim.model, {}), asks)
        self._entitled = {}
        self._wanted = {(ask.model, resource): ask.wanted for resource, rows in asks.items() for ask in rows}
        for resource in asks:
            found = self.policy.entitlements(resource, self.capacity.get(resource, 0))
            if found.is_empty:
                continue
            allocation = self._allocations[resource] = Allocation(found, asks[resource])
            self._entitled.update({(model, resource): units for model, units in allocation.entitled.items()})
        clip(asks, self._entitled, self.policy.limits_over)
        self._find_short()

    def _ask(self, claim: Claim, wishes: Mapping[str, Steps], asks: dict[str, list[Ask]]) -> None:
        scope = self.scope_of(claim.model)
        if scope is None:
            return
        for resource in {**claim.using, **wishes}:
            ask = Ask(
                model=claim.model,
                scope=scope,
                using=claim.using.get(resource, ()),
                wishes=wishes.get(resource, ()),
                priority=claim.priority,
                short_since=claim.short_since,
            )
            asks.setdefault(resource, []).append(ask)

    def _find_short(self) -> None:
        self._short = {}
        for (model, resource), units in self._entitled.items():
            missing = units - self._using.get((model, resource), 0)
            if missing > 0:
                self._short.setdefault(resource, {})[model] = missing

    def scope_of(self, model: str) -> str | None:
        """The scope that pays for what is granted to the model."""
        return self._charged.get(model, self.claims[model].scope)

    def entitlement(self, model: str, resource: str) -> int:
        """Units of the class that the model is entitled to, in whole replicas."""
        return self._entitled.get((model, resource), 0)

    def opening(self, model: str, resource: str) -> int:
        """Units of replicas that stay, as they were before the pass gave anything."""
        return units_of(self.claims[model].using.get(resource, ()))

    def using(self, model: str, resource: str) -> int:
        """Units of replicas that stay, the pass's grants counted in."""
        return self._using.get((model, resource), 0)

    def short(self, model: str, resource: str) -> int:
        """Units that the model is entitled to and does not have."""
        return self._short.get(resource, {}).get(model, 0)

    def entitled(self, model: str, resource: str, units: int) -> bool:
        """Whether one more replica is within what the model is entitled to."""
        return self.using(model, resource) + units <= self.entitlement(model, resource)

    def classes_of(self, model: str) -> set[str]:
        """The classes in which the model holds or wants something."""
        claim = self.claims[model]
        return {*claim.units, *self._wishes.get(model, ()), *self._started.get(model, ())}

    def held(self, model: str, resource: str) -> int:
        """Units in every state, the pass's grants counted in."""
        started = self._started.get(model, {}).get(resource, 0)
        return self.claims[model].units.get(resource, 0) + started

    def wanted(self, model: str, resource: str) -> int:
        """What the model uses and wishes for."""
        return self._wanted.get((model, resource), 0)

    def anyone_short(self) -> bool:
        """Whether any model is short of what it is entitled to."""
        return any(self._short.values())

    def others_short(self, model: str, resource: str) -> bool:
        """Whether another model is short of what it is owed in that class."""
        return any(name != model for name in self._short.get(resource, ()))

    # Limits

    def rows(self, model: str, resource: str) -> tuple[Quota, ...]:
        """The rows with a limit on the model's replicas in that class, by scope and target."""
        key = (model, resource)
        rows = self._binding.get(key)
        if rows is None:
            over = self.policy.limits_over(self.scope_of(model))
            rows = self._binding[key] = tuple(
                row for row in over if (covers(row.target, resource) if row.model is None else row.model == model)
            )
        return rows

    def used(self, row: Quota) -> int:
        """Units (of a row on a model: replicas) held under the row, this pass's grants counted in."""
        return self._used.get((row.scope, row.target), 0)

    def leaving(self, row: Quota) -> int:
        """What of that drains, or is ended by this pass."""
        return self._leaving.get((row.scope, row.target), 0)

    def standing(self, model: str, resource: str) -> tuple[LimitStop, ...]:
        """Every limit over the model's replicas in that class with its use as it stands now, by scope and target."""
        return tuple(
            LimitStop(scope=row.scope, target=row.target, limit=row.limit, used=self.used(row))
            for row in self.rows(model, resource)
            if row.limit is not None
        )

    def blocked(self, model: str, resource: str, units: int) -> tuple[LimitStop, ...]:
        """The limits that one more replica of `units` (all hosts) would pass, by scope and target; empty: none."""
        return tuple(
            LimitStop(scope=row.scope, target=row.target, limit=row.limit, used=used)
            for row in self.rows(model, resource)
            if row.limit is not None and (used := self.used(row)) + (units if row.model is None else 1) > row.limit
        )

    @property
    def limits(self) -> Iterable[Quota]:
        """Every row with a limit over what models hold."""
        return self._limits.values()

    def passed(self) -> list[Quota]:
        """The rows over what models hold whose limit is passed by what stays, by scope and target."""
        rows = sorted(self._limits.items())
        return [row for _, row in rows if row.limit is not None and self.used(row) - self.leaving(row) > row.limit]

    def weight(self, model: str, resource: str) -> int:
        """The weight of the model's scope in that class; 1 where its row says nothing."""
        scope, capacity = self.scope_of(model), (self.capacity or {}).get(resource, 0)
        row = None if scope is None else self.policy.entitlements(resource, capacity).row(scope)
        return 1 if row is None else row.weight

    def exceeded(self, model: str, resource: str) -> bool:
        """Whether a limit above is passed already, so that a draining replica may not come back."""
        return any(row.limit is not None and self.used(row) > row.limit for row in self.rows(model, resource))

    # What must stay free for others

    def reserved(self, model: str, resource: str, units: int, free: int) -> ReservedStop | None:
        """Who is owed what a grant beyond the entitlement would take from the `free` units of the class, or from what is left
        under a limit; None: nobody, or the grant is within the entitlement."""
        if self.entitled(model, resource, units):
            return None
        coming = free + self._coming.get(resource, 0) - units
        return self._owed_in_class(model, resource, coming) or self._owed_under_limits(model, resource, units)

    def _owed_in_class(self, model: str, resource: str, left: int) -> ReservedStop | None:
        short = self._short.get(resource, {})
        owed = sum(short.values()) - short.get(model, 0)
        kept = self._kept(model, resource)
        if owed + sum(kept.values()) <= left:
            return None
        return self._most_owed({name: units for name, units in short.items() if name != model}, kept)

    def _kept(self, model: str, resource: str) -> dict[str, int]:
        """What scopes above which the model does not stand keep idle: scope → units."""
        allocation = self._allocations.get(resource)
        if allocation is None or not allocation.keeps:
            return {}
        scope = self.scope_of(model)
        return allocation.kept_from(self.policy.tenancy.ancestors(scope) if scope is not None else frozenset())

    def _owed_under_limits(self, model: str, resource: str, units: int) -> ReservedStop | None:
        for row in self.rows(model, resource):
            if row.model is not None or row.limit is None:
                continue
            short = self._short_below(row, model)
            left = row.limit - self.used(row) + self.leaving(row) - units
            if short and sum(short.values()) > left:
                return self._most_owed(short, {})
        return None

    def _short_below(self, row: Quota, model: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for resource, short in self._short.items():
            if covers(row.target, resource):
                for name, units in short.items():
                    if name != model and row.scope in self.policy.tenancy.ancestors(self.scope_of(name) or ""):
                        found[name] = found.get(name, 0) + units
        return found

    def _most_owed(self, short: Mapping[str, int], kept: Mapping[str, int]) -> ReservedStop:
        owed = dict(kept)
        for model, units in short.items():
            scope = self.scope_of(model) or ""
            owed[scope] = owed.get(scope, 0) + units
        scope = min(owed, key=lambda name: (-owed[name], name))
        return ReservedStop(scope=scope, units=owed[scope])

    # What the pass does

    def grant(self, model: str, resource: str, units: int) -> None:
        """Count one more replica of `units` (all hosts)."""
        for row in self.rows(model, resource):
            self._used[row.scope, row.target] += units if row.model is None else 1
        started = self._started.setdefault(model, {})
        started[resource] = started.get(resource, 0) + units
        self._use(model, resource, units)

    def regain(self, model: str, resource: str, units: int) -> None:
        """Count one that drained and stays after all; it is held already."""
        for row in self.rows(model, resource):
            self._leaving[row.scope, row.target] -= units if row.model is None else 1
        self._coming[resource] = max(0, self._coming.get(resource, 0) - units)
        self._use(model, resource, units)

    def _use(self, model: str, resource: str, units: int) -> None:
        self._using[model, resource] = self.using(model, resource) + units
        short = self._short.get(resource, {})
        if model in short:
            short[model] -= units
            if short[model] <= 0:
                del short[model]


def _covered(target: str, units: Mapping[str, int]) -> int:
    return sum(number for resource, number in units.items() if covers(target, resource))
