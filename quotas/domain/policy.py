"""May a model have one more replica? Asked for every single one, with all that the pass has granted so far counted in.

The limits of all ancestors bind. Guarantees come through the funding parent (`quotas.domain.entitlement`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quotas.domain.entitlement import Entitlements
from quotas.domain.tenancy import Tenancy
from quotas.domain.types import Claim, LimitStop, Problem, Quota, ReservedStop, Scope, covers


class QuotaPolicy:
    """Scopes and quota rows made ready for any number of passes. Only scopes that are asked about cost anything."""

    __slots__ = ("_bindings", "_entitlements", "_guarantees", "_rows", "problems", "quotas", "tenancy")

    def __init__(self, tenancy: Tenancy, quotas: Iterable[Quota]) -> None:
        self.tenancy = tenancy
        self.quotas = tuple(quotas)
        self._rows: dict[str, list[Quota]] = {}
        self._guarantees: dict[str, list[Quota]] = {}
        for quota in self.quotas:
            if quota.limit is not None:
                self._rows.setdefault(quota.scope, []).append(quota)
            if quota.guarantee is not None:
                self._guarantees.setdefault(quota.target, []).append(quota)
        self._entitlements: dict[str, Entitlements] = {}
        self._bindings: dict[str, tuple[Quota, ...]] = {}
        self.problems: tuple[Problem, ...] = tuple(tenancy.problems() + _crossed(self.quotas))

    def limits_over(self, scope: str | None) -> tuple[Quota, ...]:
        """Every row with a limit of `scope` and all above it, by scope and target; a model without a scope is bound by none."""
        if scope is None:
            return ()
        found = self._bindings.get(scope)
        if found is None:
            above = self.tenancy.ancestors(scope)
            rows = [row for name in above for row in self._rows.get(name, ())]
            found = self._bindings[scope] = tuple(sorted(rows, key=lambda row: (row.scope, row.target)))
        return found

    def entitlements(self, resource: str, capacity: int | None) -> Entitlements:
        """What each scope is entitled to of a class with that many units on ready nodes (None: not known)."""
        found = self._entitlements.get(resource)
        if found is None or found.capacity != capacity:
            rows = self._guarantees.get(resource, ())
            found = self._entitlements[resource] = Entitlements(self.tenancy, self._rows, rows, resource, capacity)
        return found

    def effective_limit(self, scope: str, resource: str) -> Quota | None:
        """The row that sets the smallest limit on the class over all ancestors; None: no limit."""
        rows = [row for row in self.limits_over(scope) if row.model is None and covers(row.target, resource)]
        return min(rows, key=lambda row: (row.limit, row.scope, row.target), default=None)

    def ledger(self, claims: Iterable[Claim], charged: Mapping[str, str] | None = None) -> Ledger:
        """The books of one pass, opened with what each model holds. `charged`: model → the scope that pays for what is
        granted to it, where that is not its own."""
        return Ledger(self, claims, charged or {})


class Ledger:
    """Usage of every binding row in one pass; each model counts once for a row, however many paths lead to its scope."""

    __slots__ = ("_binding", "_charged", "_claims", "_policy", "_used")

    def __init__(self, policy: QuotaPolicy, claims: Iterable[Claim], charged: Mapping[str, str]) -> None:
        self._policy = policy
        self._charged = charged
        self._claims = {claim.model: claim for claim in claims}
        self._used: dict[tuple[str, str], int] = {}
        self._binding: dict[tuple[str, str], tuple[Quota, ...]] = {}
        for scope in charged.values():
            for row in policy.limits_over(scope):
                self._used[row.scope, row.target] = 0
        for claim in self._claims.values():
            self._open(claim)

    def _open(self, claim: Claim) -> None:
        for row in self._policy.limits_over(claim.scope):
            if row.model is None:
                held = sum(units for resource, units in claim.units.items() if covers(row.target, resource))
            else:
                held = claim.replicas if row.model == claim.model else 0
            key = (row.scope, row.target)
            self._used[key] = self._used.get(key, 0) + held

    def _rows(self, model: str, resource: str) -> tuple[Quota, ...]:
        key = (model, resource)
        rows = self._binding.get(key)
        if rows is None:
            over = self._policy.limits_over(self._charged.get(model, self._claims[model].scope))
            rows = self._binding[key] = tuple(
                row for row in over if (covers(row.target, resource) if row.model is None else row.model == model)
            )
        return rows

    def standing(self, model: str, resource: str) -> tuple[LimitStop, ...]:
        """Every limit over the model's replicas in that class with its use as it stands now, by scope and target."""
        return tuple(
            LimitStop(scope=row.scope, target=row.target, limit=row.limit, used=self._used[row.scope, row.target])
            for row in self._rows(model, resource)
            if row.limit is not None
        )

    def blocked(self, model: str, resource: str, units: int) -> tuple[LimitStop, ...]:
        """The limits that one more replica of `units` (all hosts) would pass, by scope and target; empty: none."""
        return tuple(
            LimitStop(scope=row.scope, target=row.target, limit=row.limit, used=used)
            for row in self._rows(model, resource)
            if row.limit is not None
            and (used := self._used[row.scope, row.target]) + (units if row.model is None else 1) > row.limit
        )

    def exceeded(self, model: str, resource: str) -> bool:
        """Whether a limit above is passed already, so that a draining replica may not come back."""
        return any(row.limit is not None and self._used[row.scope, row.target] > row.limit for row in self._rows(model, resource))

    def entitled(self, model: str, resource: str, units: int) -> bool:
        """Whether one more replica is within what the model is entitled to."""
        return False

    def anyone_short(self, resource: str) -> bool:
        """Whether somebody is short of what he is owed in that class."""
        return False

    def reserved(self, model: str, resource: str, units: int, free: int) -> ReservedStop | None:
        """Who is owed what a grant beyond the entitlement would take from the `free` units of the class; None: nobody."""
        return None

    def grant(self, model: str, resource: str, units: int) -> None:
        """Count one more replica of `units` (all hosts)."""
        for row in self._rows(model, resource):
            self._used[row.scope, row.target] += units if row.model is None else 1


def build_policy(scopes: Iterable[Scope], quotas: Iterable[Quota]) -> QuotaPolicy:
    """The policy for these rows; bad rows become problems and never an error."""
    return QuotaPolicy(Tenancy(scopes), quotas)


def _crossed(quotas: Iterable[Quota]) -> list[Problem]:
    """`limit_below_guarantee`, once a scope, with the numbers of each row."""
    details: dict[str, list[str]] = {}
    for row in quotas:
        if row.guarantee is not None and row.limit is not None and row.limit < row.guarantee:
            text = f"{row.target}: the limit {row.limit} is below the guarantee {row.guarantee}; the limit holds"
            details.setdefault(row.scope, []).append(text)
    return [
        Problem(code="limit_below_guarantee", subject=f"scope:{scope}", detail="; ".join(sorted(texts)))
        for scope, texts in details.items()
    ]
