"""What each model is entitled to of one class in a pass, all demands known: quotas.md, "In a pass, all demands known"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from datetime import datetime

from quotas.domain.entitlement import Entitlements
from quotas.domain.shares import Claimant, fill

Steps = tuple[tuple[int, int], ...]
"""Replicas as (units of one over all hosts, how many), in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What one model has and wants of a class. `using`: replicas that stay, largest first; `wishes`: what Add would start.
    `priority` and `short_since` (None: since now) say whose wish is clipped first."""

    model: str
    scope: str
    using: Steps = ()
    wishes: Steps = ()
    priority: int = 0
    short_since: datetime | None = None

    @property
    def used(self) -> int:
        return units_of(self.using)

    @property
    def wanted(self) -> int:
        return self.used + units_of(self.wishes)


def units_of(steps: Steps) -> int:
    return sum(size * count for size, count in steps)


@dataclass(slots=True)
class _Branch:
    """A scope with what comes through it. `used`, `wanted`: of all that it funds; `kept`: idle units in it that are not lent."""

    name: str
    assured: int
    weight: int
    lends: bool
    cap: int | None
    scopes: list[_Branch] = field(default_factory=list)
    models: list[Ask] = field(default_factory=list)
    used: int = 0
    wanted: int = 0
    kept: int = 0
    entitled: int = 0

    @property
    def base(self) -> int:
        return min(self.wanted, self.assured)

    def gather(self) -> None:
        """Add up what is below; its limit caps what it may want. Children first."""
        self.used = sum(branch.used for branch in self.scopes) + sum(ask.used for ask in self.models)
        wanted = sum(branch.wanted for branch in self.scopes) + sum(ask.wanted for ask in self.models)
        self.wanted = wanted if self.cap is None else min(wanted, self.cap)
        idle = self.assured - self.base
        self.kept = min(idle, sum(branch.kept for branch in self.scopes)) if self.lends else idle

    def set_aside(self) -> None:
        """`kept` now that it is known who is entitled to what. Children first."""
        idle = max(0, self.assured - max(self.used, self.entitled))
        self.kept = sum(branch.kept for branch in self.scopes) if self.lends else idle


class Allocation:
    """`entitled`: model → units in whole replicas. `keeps`: whether any scope keeps idle units to itself."""

    __slots__ = ("_branches", "_tops", "entitled", "found", "keeps")

    def __init__(self, found: Entitlements, asks: Iterable[Ask]) -> None:
        self.found = found
        self.entitled: dict[str, int] = {}
        self._branches: dict[str, _Branch] = {}
        self._tops: list[_Branch] = []
        for ask in asks:
            if ask.scope not in found.tenancy.tangled:
                self._branch(ask.scope).models.append(ask)
        for scope in found.withholding:
            self._branch(scope)
        order = list(self._downward())
        for branch in reversed(order):
            branch.gather()
        for branch in self._tops:
            branch.entitled = branch.base
        for branch in order:
            self._share_out(branch)
        for branch in reversed(order):
            branch.set_aside()
        self.keeps = any(branch.kept for branch in self._tops)

    def kept_from(self, above: Set[str]) -> dict[str, int]:
        """Scope → assured units that it keeps idle from whoever stands below none but the scopes `above`.

        What a scope keeps covers what scopes below it keep by themselves."""
        found: dict[str, int] = {}
        todo = list(self._tops)
        while todo:
            branch = todo.pop()
            if not branch.lends and branch.name not in above:
                if branch.kept:
                    found[branch.name] = branch.kept
            elif branch.kept or branch.name in above:
                todo += branch.scopes
        return found

    def _branch(self, scope: str) -> _Branch:
        """The scope's branch, hung below those that fund it."""
        found = self._branches.get(scope)
        if found is not None:
            return found
        lowest = child = self._new(scope)
        while True:
            parent = self.found.tenancy.funding_parent(child.name)
            if parent is None:
                self._tops.append(child)
                return lowest
            known = self._branches.get(parent)
            (known or self._new(parent)).scopes.append(child)
            if known:
                return lowest
            child = self._branches[parent]

    def _new(self, scope: str) -> _Branch:
        row = self.found.row(scope)
        branch = _Branch(
            name=scope,
            assured=self.found.assured(scope),
            weight=1 if row is None else row.weight,
            lends=row is None or row.lend,
            cap=self.found.own_limit(scope),
        )
        self._branches[scope] = branch
        return branch

    def _downward(self) -> Iterator[_Branch]:
        todo = list(self._tops)
        while todo:
            branch = todo.pop()
            yield branch
            todo += branch.scopes

    def _share_out(self, parent: _Branch) -> None:
        """Give the parent's units to what it funds: what is assured first, then incumbents, then wishes."""
        if not parent.entitled:
            self.entitled.update((ask.model, 0) for ask in parent.models)
            return
        base = sum(branch.base for branch in parent.scopes)
        idle = sum(branch.kept for branch in parent.scopes)
        left = max(0, min(parent.entitled, max(parent.entitled, parent.assured) - idle) - base)
        scopes = [(branch, _of_scope(branch, branch.base, min(branch.used, branch.wanted))) for branch in parent.scopes]
        models = [(ask, Claimant(name=ask.model, weight=1, total=0, steps=list(ask.using))) for ask in parent.models]
        claimants = [*(claimant for _, claimant in scopes), *(claimant for _, claimant in models)]
        left = fill(left, claimants)
        for branch, claimant in scopes:
            claimant.steps += _steps(branch.wanted - claimant.total - claimant.wanted)
        for ask, claimant in models:
            claimant.steps += ask.wishes
        fill(left, claimants)
        for branch, claimant in scopes:
            branch.entitled = claimant.total
        for ask, claimant in models:
            self.entitled[ask.model] = claimant.total


def _of_scope(branch: _Branch, has: int, keeps: int) -> Claimant:
    return Claimant(name=branch.name, weight=branch.weight, total=has, steps=_steps(keeps - has))


def _steps(units: int) -> list[tuple[int, int]]:
    return [(1, units)] if units > 0 else []
