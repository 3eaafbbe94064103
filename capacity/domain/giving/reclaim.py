"""A scope that is short of what it is entitled to gets it back: borrowers drain for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from capacity.domain.clock import reached
from capacity.domain.giving.lenders import Lender, Lenders, Shortage
from capacity.domain.giving.outlook import Outlook
from capacity.domain.needs import Need
from capacity.domain.placement import Purpose, Rating
from capacity.domain.types import Replica, Snapshot
from quotas.domain.ledger import Ledger
from quotas.domain.types import covers

MOST_REPLICAS: Final = 10_000
"""Replicas for which something is sought in one pass, over all models."""

Taken = list[tuple[Lender, Replica]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """`replica` of `model` is given back for `asker`."""

    model: str
    replica: Replica
    asker: str


@dataclass(slots=True)
class _Left:
    """What an asker still lacks: replicas below its minimum, demand, and replicas within step and maximum."""

    floor: int
    load: int
    step: int
    most: int | None
    wake: bool

    @property
    def is_open(self) -> bool:
        if self.most is not None and self.most <= 0:
            return False
        return self.floor > 0 or (self.step > 0 and (self.wake or self.load > 0))

    def less(self, gives: int) -> None:
        self.floor -= 1
        self.step -= 1
        self.load -= gives
        self.wake = False
        self.most = None if self.most is None else self.most - 1


class Reclaim:
    """One pass's search. Marks each need for which something comes, or would but for the wait, as `awaited`."""

    def __init__(self, snapshot: Snapshot, ledger: Ledger, outlook: Outlook, lenders: Lenders) -> None:
        self._snapshot, self._ledger, self._outlook, self._lenders = snapshot, ledger, outlook, lenders
        self._promised: dict[tuple[str, str], int] = {}
        self._left = MOST_REPLICAS
        self.returns: list[Return] = []

    def search(self, needs: Iterable[Need]) -> None:
        """Those for whom something drains first, then by model priority and name."""
        order = sorted(needs, key=lambda n: (not n.promised, -n.tally.model.priority, n.tally.model.name))
        for need in order:
            if not need.evacuate and need.open:
                self._serve(need)

    def _serve(self, need: Need) -> None:
        settings, model = self._snapshot.settings, need.tally.model
        wait = settings.reclaim_wait_seconds
        waited = wait == 0 or (model.short_since is not None and reached(model.short_since, self._snapshot.at, wait))
        placed: list[tuple[Rating, tuple[str, ...]]] = []
        taken: Taken = []
        left = _left_of(need)
        while left.is_open and self._left:
            found = self._one(need, left)
            if found is None:
                break
            rating, nodes, victims = found
            self._left -= 1
            self._promise(need, rating, nodes, 1)
            placed.append((rating, nodes))
            taken += victims
            left.less(need.gives(rating))
        need.awaited = need.awaited or bool(taken)
        if waited:
            self.returns += [Return(model=lender.name, replica=replica, asker=model.name) for lender, replica in taken]
            return
        for rating, nodes in placed:
            self._promise(need, rating, nodes, -1)
        self._give_back(taken)

    def _one(self, need: Need, left: _Left) -> tuple[Rating, tuple[str, ...], Taken] | None:
        """One more replica: in what comes free anyway, else with the fewest that must go; None where nothing does it."""
        ratings = [rating for rating in self._ratings(need, left) if self._is_entitled(need, rating)]
        for rating in ratings:
            nodes = self._fits(need, rating)
            if nodes is not None:
                return rating, nodes, []
        for rating in ratings:
            taken = self._cover(need, rating)
            nodes = self._fits(need, rating) if taken else None
            if nodes is not None:
                return rating, nodes, taken
        return None

    def _ratings(self, need: Need, left: _Left) -> Sequence[Rating]:
        purpose: Purpose = "floor" if left.floor > 0 else "wake" if need.wake else "load"
        return [rating for rating in need.order if rating.profile.state == "active" and rating.serves(purpose)]

    def _is_entitled(self, need: Need, rating: Rating) -> bool:
        model, resource = need.tally.model.name, rating.profile.resource
        promised = self._promised.get((model, resource), 0)
        return self._ledger.entitled(model, resource, rating.units + promised)

    def _fits(self, need: Need, rating: Rating) -> tuple[str, ...] | None:
        if self._outlook.blocking(need.tally.model.name, rating):
            return None
        return self._outlook.place_for(rating)

    def _promise(self, need: Need, rating: Rating, nodes: tuple[str, ...], by: int) -> None:
        key = (need.tally.model.name, rating.profile.resource)
        self._promised[key] = self._promised.get(key, 0) + by * rating.units
        (self._outlook.place if by > 0 else self._outlook.unplace)(need.tally.model.name, rating, nodes)

    def _cover(self, need: Need, rating: Rating) -> Taken:
        """A set without which the replica would not fit; empty where no set does it, and then nothing is changed."""
        taken: Taken = []
        while self._fits(need, rating) is None:
            victim = self._lenders.first(self._shortage(need, rating))
            if victim is None:
                self._give_back(taken)
                return []
            self._take(*victim)
            taken.append(victim)
        return self._without_idle_ones(need, rating, taken)

    def _shortage(self, need: Need, rating: Rating) -> Shortage:
        """At a limit only models below it help; where room is short only replicas on nodes that the asker can use."""
        asker, profile = need.tally.model.name, rating.profile
        blocking = self._outlook.blocking(asker, rating)
        tenancy = self._ledger.policy.tenancy

        def makes_room(lender: Lender, replica: Replica) -> bool:
            same = lender.tally.rating(replica).profile.resource == profile.resource
            return same and lender.name != asker and self._outlook.usable(rating, replica.nodes)

        def lowers_use(lender: Lender, replica: Replica) -> bool:
            resource = lender.tally.rating(replica).profile.resource
            above = tenancy.ancestors(self._ledger.scope_of(lender.name) or "")
            below = any(row.scope in above and row.model is None and covers(row.target, resource) for row in blocking)
            return below and lender.name != asker

        if blocking:
            return Shortage(key=(asker, *((row.scope, row.target) for row in blocking)), helps=lowers_use)
        return Shortage(key=(asker, profile.name), helps=makes_room)

    def _without_idle_ones(self, need: Need, rating: Rating, taken: Taken) -> Taken:
        """Hand back the largest that turned out not to be needed, then the next, the last taken first."""
        kept = list(taken)
        latest_first = reversed(taken)
        for victim in sorted(latest_first, key=lambda victim: -victim[0].tally.rating(victim[1]).units):
            self._give_back([victim])
            if self._fits(need, rating) is None:
                self._take(*victim)
            else:
                kept.remove(victim)
        return kept

    def _take(self, lender: Lender, replica: Replica) -> None:
        self._outlook.end(lender.tally, replica)
        lender.take(replica)

    def _give_back(self, taken: Taken) -> None:
        for lender, replica in reversed(taken):
            self._outlook.keep(lender.tally, replica)
            lender.keep(replica)


def _left_of(need: Need) -> _Left:
    most = need.tally.model.max_replicas
    return _Left(
        floor=need.floor - need.added,
        load=need.demand - need.capacity,
        step=need.step - need.added,
        most=None if most is None else most - need.tally.held - need.started,
        wake=need.wake_open,
    )
