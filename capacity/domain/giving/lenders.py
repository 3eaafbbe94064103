"""Whose replicas may be taken for others, and in which order: quotas.md, "Who gives back?"."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from heapq import nlargest

from capacity.domain.clock import reached
from capacity.domain.giving.outlook import Outlook
from capacity.domain.load import Tally
from capacity.domain.placement import Rating
from capacity.domain.types import Replica
from capacity.domain.victims import Victims, kept_capacity, load_of
from quotas.domain.ledger import Ledger

Turn = tuple[bool, bool, Fraction, int, bool, bool, int, timedelta, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """What is lacking, and whose end would help; those with one `key` are helped by the same replicas."""

    key: Hashable
    helps: Callable[[Lender, Replica], bool]


@dataclass(slots=True, kw_only=True, eq=False)
class Lender:
    """A model of which replicas may be taken. `leaving`: one that this pass removes anyway; `taken`: others beyond it. `given`:
    classes in which this pass gives it something, and where nothing is taken. `version` rises with each that is taken or not."""

    found: Victims
    leaving: Replica | None
    given: frozenset[str]
    taken: list[Replica] = field(default_factory=list)
    version: int = 0
    best: dict[Hashable, tuple[object, tuple[Turn, Replica] | None]] = field(default_factory=dict)
    """Shortage → for what state it was found, and who would go first."""
    _busiest: tuple[int, list[tuple[Fraction, str]]] = (-1, [])

    @property
    def tally(self) -> Tally:
        return self.found.tally

    @property
    def name(self) -> str:
        return self.found.tally.model.name

    @property
    def gone(self) -> list[Replica]:
        return self.taken if self.leaving is None else [*self.taken, self.leaving]

    def take(self, replica: Replica) -> None:
        self.taken.append(replica)
        self.version += 1

    def keep(self, replica: Replica) -> None:
        self.taken.remove(replica)
        self.version += 1

    def above_floor(self, replica: Replica) -> bool:
        if replica in self.tally.lapsed:
            return True
        live = self.tally.live - sum(1 for gone in self.gone if gone not in self.tally.lapsed)
        return live > self.tally.model.min_replicas

    def busiest(self) -> list[tuple[Fraction, str]]:
        """The two ready ones that stay with the highest share of what they were measured to serve; who counts nothing is full."""
        version, known = self._busiest
        if version != self.version:
            gone = {replica.name for replica in self.gone}
            known = nlargest(2, ((self._share(r), r.name) for r in self.tally.ready if r.name not in gone))
            self._busiest = (self.version, known)
        return known

    def _share(self, replica: Replica) -> Fraction:
        concurrency = self.tally.rating(replica).kept_concurrency
        return Fraction(self.tally.loads[replica.name] or 0, concurrency) if concurrency else Fraction(1)


class Lenders:
    """The models that may give, with what is taken from them so far. `at`: the instant; those younger than `min_run_seconds`
    are spared if others will do."""

    def __init__(self, lenders: Iterable[Lender], ledger: Ledger, outlook: Outlook, at: datetime, min_run_seconds: int) -> None:
        self._lenders = sorted(lenders, key=lambda lender: lender.name)
        self._ledger, self._outlook = ledger, outlook
        self._at, self._min_run_seconds = at, min_run_seconds
        self._queues: dict[str, dict[str, list[Replica]]] = {}
        self._borrowers = [lender for lender in self._lenders if self._borrows(lender)]

    def first(self, shortage: Shortage, *, entitled: bool = False) -> tuple[Lender, Replica] | None:
        """The first to go of those that help; of models at or below their entitlement only where `entitled` says so."""
        best: tuple[Turn, Lender, Replica] | None = None
        for lender in self._lenders if entitled else self._borrowers:
            found = self._first_of(lender, shortage, entitled)
            if found is not None and (best is None or found[0] < best[0]):
                best = (found[0], lender, found[1])
        return None if best is None else (best[1], best[2])

    def _borrows(self, lender: Lender) -> bool:
        return any(self._excess(lender, resource) > 0 for resource in _classes(lender))

    def _excess(self, lender: Lender, resource: str) -> int:
        """Units of the class beyond the model's entitlement, less what is taken of them."""
        taken = sum(r.units for replica in lender.taken if (r := lender.tally.rating(replica)).profile.resource == resource)
        return self._ledger.using(lender.name, resource) - taken - self._ledger.entitlement(lender.name, resource)

    def _first_of(self, lender: Lender, shortage: Shortage, entitled: bool) -> tuple[Turn, Replica] | None:
        over = tuple(self._outlook.is_over(lender.name, resource) for resource in _classes(lender))
        key, state = (shortage.key, entitled), (lender.version, over)
        known = lender.best.get(key)
        if known is None or known[0] != state:
            known = lender.best[key] = (state, self._look_up(lender, shortage, entitled))
        return known[1]

    def _look_up(self, lender: Lender, shortage: Shortage, entitled: bool) -> tuple[Turn, Replica] | None:
        """The best of each profile's. With more load the rest can do without a replica all the less, but for the busiest one,
        which does not count against its own end: so the first that helps is asked about, and the busiest."""
        turns = []
        for profile, queue in self._queues_of(lender).items():
            rating = lender.tally.ratings[profile]
            if not entitled and rating.units > self._excess(lender, rating.profile.resource):
                continue
            turns += [(self._turn(lender, replica, rating), replica) for replica in _foremost(lender, queue, shortage)]
        return min(turns, key=lambda entry: entry[0], default=None)

    def _queues_of(self, lender: Lender) -> dict[str, list[Replica]]:
        """Profile → those that may be taken at all (removable, of known load, not stuck), in the order of their kind."""
        if lender.name not in self._queues:
            queues: dict[str, list[Replica]] = {}
            tally = lender.tally
            for replica in (*tally.starting, *tally.unready, *tally.ready):
                known = replica.removable and load_of(tally, replica) is not None
                if known and tally.rating(replica).profile.resource not in lender.given:
                    queues.setdefault(replica.profile, []).append(replica)
            for queue in queues.values():
                queue.sort(key=lambda replica: self._own_turn(tally, replica))
            self._queues[lender.name] = queues
        return self._queues[lender.name]

    def _own_turn(self, tally: Tally, replica: Replica) -> tuple[bool, bool, int, timedelta, str]:
        """Those that ran long enough, starting ones, least loaded, youngest, name."""
        age = timedelta.max if replica.since is None else max(self._at - replica.since, timedelta())
        young = not reached(replica.since, self._at, self._min_run_seconds)
        return (young, replica.state != "starting", load_of(tally, replica) or 0, age, replica.name)

    def _turn(self, lender: Lender, replica: Replica, rating: Rating) -> Turn:
        """Over-limit scopes, those that ran long enough, largest excess per weight, lowest priority, those that the rest can do
        without, then as among their own kind."""
        young, not_starting, load, age, name = self._own_turn(lender.tally, replica)
        resource = rating.profile.resource
        return (
            not self._outlook.is_over(lender.name, resource),
            young,
            -self._excess(lender, resource) / self._weight(lender, resource),
            lender.tally.model.priority,
            not _rest_can_do(lender, replica),
            not_starting,
            load,
            age,
            name,
        )

    def _weight(self, lender: Lender, resource: str) -> Fraction:
        """Of the model's scope; where it has none, less than any other."""
        weight = self._ledger.weight(lender.name, resource)
        return Fraction(weight) if weight else Fraction(1, 10**13)


def _classes(lender: Lender) -> list[str]:
    return sorted({lender.tally.ratings[profile].profile.resource for profile in lender.tally.held_by_profile})


def _foremost(lender: Lender, queue: list[Replica], shortage: Shortage) -> list[Replica]:
    """The first of the queue that helps, and the busiest one, where it may go and helps."""
    gone = {replica.name for replica in lender.gone}

    def may_go(replica: Replica) -> bool:
        return replica.name not in gone and lender.above_floor(replica) and shortage.helps(lender, replica)

    first = next((replica for replica in queue if may_go(replica)), None)
    if first is None:
        return []
    busiest = {name for _, name in lender.busiest()[:1]} - {first.name}
    return [first, *(replica for replica in queue if replica.name in busiest and may_go(replica))]


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
