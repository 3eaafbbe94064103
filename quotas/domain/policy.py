"""May a model have one more replica? Asked for every single one, with all that the pass has granted so far counted in.

The limits of all ancestors bind. Guarantees come through the funding parent (`quotas.domain.entitlement`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quotas.domain.entitlement import Entitlements
from quotas.domain.ledger import Ledger
from quotas.domain.tenancy import Tenancy
from quotas.domain.types import Claim, Problem, Quota, Scope, covers


class QuotaPolicy:
    """Scopes and quota rows made ready for any number of passes. Only scopes that are asked about cost anything."""

    __slots__ = ("_bindings", "_entitlements", "_on", "_rows", "problems", "quotas", "tenancy")

    def __init__(self, tenancy: Tenancy, quotas: Iterable[Quota]) -> None:
        self.tenancy = tenancy
        self.quotas = tuple(quotas)
        self._rows: dict[str, list[Quota]] = {}
        self._on: dict[str, list[Quota]] = {}
        for quota in self.quotas:
            if quota.limit is not None:
                self._rows.setdefault(quota.scope, []).append(quota)
            if quota.model is None:
                self._on.setdefault(quota.target, []).append(quota)
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
            rows = self._on.get(resource, ())
            found = self._entitlements[resource] = Entitlements(self.tenancy, self._rows, rows, resource, capacity)
        return found

    def effective_limit(self, scope: str, resource: str) -> Quota | None:
        """The row that sets the smallest limit on the class over all ancestors; None: no limit."""
        rows = [row for row in self.limits_over(scope) if row.model is None and covers(row.target, resource)]
        return min(rows, key=lambda row: (row.limit, row.scope, row.target), default=None)

    def ledger(
        self, claims: Iterable[Claim], charged: Mapping[str, str] | None = None, capacity: Mapping[str, int] | None = None
    ) -> Ledger:
        """The books of one pass, opened with what each model holds. `charged`: model → the scope that pays for what is
        granted to it, where that is not its own. `capacity`: class → units on ready nodes, None where they are not known."""
        return Ledger(self, claims, charged or {}, capacity)


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
