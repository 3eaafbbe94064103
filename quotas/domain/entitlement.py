"""What each scope is entitled to of one class, before anybody asks for anything: quotas.md, "What each scope is entitled to"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from quotas.domain.shares import in_proportion
from quotas.domain.tenancy import Tenancy
from quotas.domain.types import Problem, Quota, covers

CAPACITY = ""
"""The name that stands for the pool's capacity where something is scaled to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entitlement:
    """One scope in one class, whole units.

    `guarantee`: its own row's, None where none is stated. `limit`: the row that sets the effective limit (the smallest of the
    scope and all above it, on the class or a path above the class), None where there is none. `reserved`: what its row, or the
    scopes that it funds, ask to be kept for it, within all limits. `assured`: what is left of that once parents and capacity
    have been shared out. `cut_by`: another row's limit that is below its guarantee. `scaled_by`: whose share, or which capacity
    (`CAPACITY`), was too small for all; None where nothing was scaled.
    """

    scope: str
    resource: str
    guarantee: int | None
    limit: Quota | None
    reserved: int
    assured: int
    cut_by: Quota | None = None
    scaled_by: str | None = None

    @property
    def effective_limit(self) -> int | None:
        return None if self.limit is None else self.limit.limit

    @property
    def backed_percent(self) -> int | None:
        """How much of the stated guarantee is assured, rounded down; None where none or 0 is stated."""
        return 100 * self.assured // self.guarantee if self.guarantee else None


class Entitlements:
    """All scopes in one class. Only scopes with a guarantee, and those that fund them, cost anything; any may be asked about.

    `capacity`: whole units on ready nodes; None where it is not known, and then nothing is scaled to it.
    """

    __slots__ = (
        "_assured",
        "_cut",
        "_least",
        "_limits",
        "_reserved",
        "_rows",
        "_scaled",
        "capacity",
        "children",
        "resource",
        "tenancy",
    )

    def __init__(
        self,
        tenancy: Tenancy,
        limits: Mapping[str, Iterable[Quota]],
        rows: Iterable[Quota],
        resource: str,
        capacity: int | None,
    ) -> None:
        self.tenancy, self.resource, self.capacity = tenancy, resource, capacity
        self._limits = limits
        self._rows = {row.scope: row for row in rows}
        self._least: dict[str, Quota | None] = {}
        self._reserved: dict[str, int] = {}
        self._assured: dict[str, int] = {}
        self._scaled: dict[str, str] = {}
        self._cut: dict[str, Quota] = {}
        self.children: dict[str, list[str]] = {}
        """Funding parent → the scopes that it funds, of those with something reserved for them."""
        self._build()

    def of(self, scope: str) -> Entitlement:
        row = self._rows.get(scope)
        return Entitlement(
            scope=scope,
            resource=self.resource,
            guarantee=row.guarantee if row else None,
            limit=self.least_limit(scope),
            reserved=self._reserved.get(scope, 0),
            assured=self._assured.get(scope, 0),
            cut_by=self._cut.get(scope),
            scaled_by=self._scaled.get(scope),
        )

    def assured(self, scope: str) -> int:
        return self._assured.get(scope, 0)

    def row(self, scope: str) -> Quota | None:
        """The scope's own row on exactly this class."""
        return self._rows.get(scope)

    def own_limit(self, scope: str) -> int | None:
        """The smallest limit of the scope's own rows on the class and the paths above it."""
        return min((row.limit for row in self._own_limits(scope) if row.limit is not None), default=None)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is assured to anybody."""
        return not any(self._assured.values())

    @property
    def withholding(self) -> Iterable[str]:
        """The scopes for which something is assured that they do not lend."""
        return [row.scope for row in self._rows.values() if not row.lend and self.assured(row.scope)]

    @property
    def reserving(self) -> Iterable[str]:
        """The scopes with a guarantee and those that fund them, cycles and what hangs below them aside."""
        return self._reserved

    def least_limit(self, scope: str) -> Quota | None:
        """The row with the smallest limit of all that bind the scope in this class, ties by scope and target."""
        if scope not in self._least:
            self._find_least(scope)
        return self._least[scope]

    def _find_least(self, scope: str) -> None:
        if scope in self.tenancy.tangled:
            # on or below a cycle no parent can be settled before its child
            above = self.tenancy.ancestors(scope)
            self._least[scope] = _least([row for name in above for row in self._own_limits(name)])
            return
        todo = [scope]
        while todo:
            parents = self.tenancy.parents.get(todo[-1], ())
            missing = [parent for parent in parents if parent not in self._least]
            if missing:
                todo += missing
                continue
            name = todo.pop()
            found = [least for parent in parents if (least := self._least[parent]) is not None]
            self._least[name] = _least([*self._own_limits(name), *found])

    def _own_limits(self, scope: str) -> Iterator[Quota]:
        return (row for row in self._limits.get(scope, ()) if row.model is None and covers(row.target, self.resource))

    def _build(self) -> None:
        tops = self._link()
        order = list(self._downward(tops))
        for scope in reversed(order):
            self._reserve(scope)
        self._share(CAPACITY, tops, sum(self._reserved[top] for top in tops) if self.capacity is None else self.capacity)
        for scope in order:
            if scope in self.children:
                self._share(scope, self.children[scope], self._assured[scope])

    def _link(self) -> list[str]:
        """Fill `children`; the tops are returned. Cycles, and what hangs below them, take no part."""
        tops: list[str] = []
        seen: set[str] = set()
        for scope in sorted(row.scope for row in self._rows.values() if row.guarantee is not None):
            name: str | None = scope
            while name is not None and name not in seen and name in self.tenancy.scopes and name not in self.tenancy.tangled:
                seen.add(name)
                parent = self.tenancy.funding_parent(name)
                (tops if parent is None else self.children.setdefault(parent, [])).append(name)
                name = parent
        return tops

    def _downward(self, tops: Iterable[str]) -> Iterator[str]:
        todo = list(tops)
        while todo:
            scope = todo.pop()
            yield scope
            todo += self.children.get(scope, ())

    def _reserve(self, scope: str) -> None:
        row, least = self._rows.get(scope), self.least_limit(scope)
        guarantee = None if row is None else row.guarantee
        wanted = sum(self._reserved[child] for child in self.children.get(scope, ())) if guarantee is None else guarantee
        if least is None or least.limit is None or least.limit >= wanted:
            self._reserved[scope] = wanted
            return
        self._reserved[scope] = least.limit
        if guarantee is not None and (least.scope, least.target) != (scope, self.resource):
            self._cut[scope] = least

    def _share(self, parent: str, scopes: Iterable[str], units: int) -> None:
        claims = {scope: self._reserved[scope] for scope in scopes}
        for scope, share in in_proportion(units, claims).items():
            self._assured[scope] = share
            if share < claims[scope]:
                self._scaled[scope] = parent


def _least(rows: Iterable[Quota]) -> Quota | None:
    bound = ((row.limit, row.scope, row.target, row) for row in rows if row.limit is not None)
    return min(bound, key=lambda entry: entry[:3], default=(0, "", "", None))[3]


def problems_of(found: Entitlements) -> Iterator[Problem]:
    """`cut` and `scaled` of one class, with the numbers."""
    for scope in sorted(found.reserving):
        entry = found.of(scope)
        if entry.cut_by is not None:
            yield Problem(code="cut", subject=f"scope:{scope}", detail=_cut_words(entry, entry.cut_by))
        if entry.scaled_by is not None:
            yield Problem(code="scaled", subject=f"scope:{scope}", detail=_scaled_words(entry, found))


def _cut_words(entry: Entitlement, by: Quota) -> str:
    limit = f"the limit {by.limit} of {by.scope} on {by.target}"
    return f"{entry.resource}: {limit} cuts the guarantee {entry.guarantee} to {entry.reserved}"


def _scaled_words(entry: Entitlement, found: Entitlements) -> str:
    by = entry.scaled_by
    held = f"the {found.capacity} of the pool" if by == CAPACITY else f"the {found.assured(by or '')} assured to {by}"
    return f"{entry.resource}: {held} are less than all that is reserved; {entry.assured} of {entry.reserved} are assured"
