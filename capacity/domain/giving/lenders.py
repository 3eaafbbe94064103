"""Whose replicas may be taken for others, and in which order: quotas.md, "Who gives back?"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from heapq import nlargest

from capacity.domain.clock import reached
from capacity.domain.load import Tally
from capacity.domain.placement import Rating
from capacity.domain.types import Replica
from capacity.domain.victims import Victims, kept_capacity, load_of
from quotas.domain.ledger import Ledger

Turn = tuple[bool, bool, Fraction, int, bool, bool, int, timedelta, str]


@dataclass(slots=True, kw_only=True, eq=False)
class Lender:
    """A model of which replicas may be taken. `leaving`: one that this pass removes anyway; `taken`: others beyond it. `given`:
    classes in which this pass gives it something, and where nothing is taken."""

    found: Victims
    leaving: Replica | None
    given: frozenset[str]
    taken: list[Replica] = field(default_factory=list)
    _busiest: tuple[int, list[tuple[Fraction, str]]] = (-1, [])

    @property
    def tally(self) -> Tally:
        return self.found.tally

    @property
    def name(self) -> str:
        return self.tally.model.name

    @property
    def gone(self) -> list[Replica]:
        return [*self.taken, *([self.leaving] if self.leaving is not None else [])]

    @property
    def live(self) -> int:
        return self.tally.live - sum(1 for replica in self.gone if replica not in self.tally.lapsed)

    def replicas(self) -> list[Replica]:
        """Those that may be taken at all, the floor aside: removable, of known load, not stuck, not on their way out."""
        group = (*self.tally.starting, *self.tally.unready, *self.tally.ready)
        gone = {replica.name for replica in self.gone}
        may_go = (r for r in group if r.removable and r.name not in gone and load_of(self.tally, r) is not None)
        return [r for r in may_go if self.tally.rating(r).profile.resource not in self.given]

    def busiest(self) -> list[tuple[Fraction, str]]:
        """The two ready ones that stay with the highest share of what they were measured to serve; who counts nothing is full."""
        number, known = self._busiest
        if number != len(self.gone):
            gone = {replica.name for replica in self.gone}
            shares = ((self._share(replica), replica.name) for replica in self.tally.ready if replica.name not in gone)
            known = nlargest(2, shares)
            self._busiest = (len(self.gone), known)
        return known

    def _share(self, replica: Replica) -> Fraction:
        concurrency = self.tally.rating(replica).kept_concurrency
        return Fraction(self.tally.loads[replica.name] or 0, concurrency) if concurrency else Fraction(1)

    def above_floor(self, replica: Replica) -> bool:
        return replica in self.tally.lapsed or self.live > self.tally.model.min_replicas


class Lenders:
    """The models that may give, with what is taken from them so far. `at`: the instant; `min_run_seconds`: younger ones are
    spared if others will do."""

    def __init__(self, lenders: Iterable[Lender], ledger: Ledger, at: datetime, min_run_seconds: int) -> None:
        self._lenders = sorted(lenders, key=lambda lender: lender.name)
        self._ledger, self._at, self._min_run_seconds = ledger, at, min_run_seconds

    def __iter__(self) -> Iterator[Lender]:
        return iter(self._lenders)

    def excess(self, lender: Lender, resource: str) -> int:
        """Units of the class beyond the model's entitlement, less what is taken of them."""
        taken = sum(r.units for replica in lender.taken if (r := lender.tally.rating(replica)).profile.resource == resource)
        return self._ledger.using(lender.name, resource) - taken - self._ledger.entitlement(lender.name, resource)

    def beyond(self, lender: Lender, rating: Rating) -> bool:
        """Whether one of that profile may go and the model still has all that it is entitled to."""
        return rating.units <= self.excess(lender, rating.profile.resource)

    def _may_spare(self, lender: Lender) -> bool:
        return any(self.excess(lender, resource) > 0 for resource in {r.profile.resource for r in lender.tally.ratings.values()})

    def first(
        self, helps: Callable[[Lender, Replica], bool], is_over: Callable[[Lender, Replica], bool], *, entitled: bool = False
    ) -> tuple[Lender, Replica] | None:
        """The first to go of those that help; of models at or below their entitlement only where `entitled` says so."""
        best: tuple[Turn, Lender, Replica] | None = None
        for lender in self._lenders:
            for replica in lender.replicas() if entitled or self._may_spare(lender) else ():
                rating = lender.tally.rating(replica)
                if not lender.above_floor(replica) or not (entitled or self.beyond(lender, rating)) or not helps(lender, replica):
                    continue
                turn = self._turn(lender, replica, rating, is_over(lender, replica))
                if best is None or turn < best[0]:
                    best = (turn, lender, replica)
        return None if best is None else (best[1], best[2])

    def _turn(self, lender: Lender, replica: Replica, rating: Rating, is_over: bool) -> Turn:
        """Over-limit scopes, those that ran long enough, largest excess per weight, lowest priority, those that the rest can do
        without, starting ones, least loaded, youngest, name."""
        age = timedelta.max if replica.since is None else max(self._at - replica.since, timedelta())
        return (
            not is_over,
            not reached(replica.since, self._at, self._min_run_seconds),
            -Fraction(self.excess(lender, rating.profile.resource), self._weight(lender, rating.profile.resource)),
            lender.tally.model.priority,
            not _rest_can_do(lender, replica),
            replica.state != "starting",
            load_of(lender.tally, replica) or 0,
            age,
            replica.name,
        )

    def _weight(self, lender: Lender, resource: str) -> Fraction:
        """Of the model's scope; one without weight has more than any other."""
        weight = self._ledger.weight(lender.name, resource)
        return Fraction(weight) if weight else Fraction(1, 10**13)


def _rest_can_do(lender: Lender, victim: Replica) -> bool:
    """Whether the rest stays under the threshold: rules 5 and 6 of Remove, with all that is taken already gone."""
    tally, found = lender.tally, lender.found
    peak, load = tally.peak, load_of(tally, victim)
    if peak is None or load is None:
        return False
    gone = sum(tally.rating(replica).kept_concurrency for replica in lender.gone if replica.state == "ready")
    capacity = kept_capacity(found, victim) - gone
    if peak >= found.fraction * capacity:
        return False
    busiest = next((share for share, name in lender.busiest() if name != victim.name), Fraction(0))
    return not load or busiest + Fraction(load, capacity) < found.fraction
