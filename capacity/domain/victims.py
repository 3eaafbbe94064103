"""Which replica would go first, and whether the others could do without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from capacity.domain.load import Tally
from capacity.domain.types import Replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """The candidates of one model, best first: at most one a profile. All of one state, as long as one of it may go."""

    tally: Tally
    candidates: tuple[Replica, ...]
    leaving: tuple[Replica, ...]
    """Ready replicas that may go and stand on a cordoned node or on a retired profile, or are outdated; first to go first."""
    fraction: Fraction
    at: datetime

    @property
    def first(self) -> Replica | None:
        return self.candidates[0] if self.candidates else None


def victims(tally: Tally, cordoned: Set[str], fraction: Fraction, at: datetime) -> Victims:
    """Find who may go. `cordoned`: nodes that take no new replicas. `fraction` is the model's own or the setting's."""
    own = tally.model.scale_down_fraction
    any_leaves = bool(cordoned) or _any_replaced(tally)
    chooser = _Chooser(tally=tally, cordoned=cordoned, at=at, any_leaves=any_leaves)
    leaving = [replica for replica in tally.ready if replica.removable and chooser.leaves(replica)] if any_leaves else []
    return Victims(
        tally=tally,
        candidates=tuple(chooser.candidates()),
        leaving=tuple(sorted((r for r in leaving if tally.loads[r.name] is not None), key=chooser.turn)),
        fraction=fraction if own is None else own,
        at=at,
    )


def _any_replaced(tally: Tally) -> bool:
    if any(rating.profile.state == "retire" for rating in tally.ratings.values()):
        return True
    return any(replica.outdated for group in (tally.ready, tally.starting, tally.unready) for replica in group)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chooser:
    tally: Tally
    cordoned: Set[str]
    at: datetime
    any_leaves: bool

    def leaves(self, replica: Replica) -> bool:
        if replica.outdated or self.tally.ratings[replica.profile].profile.state == "retire":
            return True
        return not self.cordoned.isdisjoint(replica.nodes)

    def candidates(self) -> list[Replica]:
        """While one is starting or unready only such a one is a candidate; of a profile only the least loaded."""
        for group in (self.tally.starting, self.tally.unready, self.tally.ready):
            removable = [replica for replica in group if replica.removable]
            if removable:
                return sorted(self._one_a_profile(removable), key=self.turn)
        return []

    def _one_a_profile(self, group: Iterable[Replica]) -> Iterator[Replica]:
        """Of each profile the first to go. Ages and names are only asked for where loads tie."""
        best: dict[str, tuple[bool, int]] = {}
        ties: dict[str, list[Replica]] = {}
        any_leaves = self.any_leaves
        for replica in group:
            load = load_of(self.tally, replica)
            if load is None:
                continue
            rank = (not (any_leaves and self.leaves(replica)), load)
            known = best.get(replica.profile)
            if known is None or rank < known:
                best[replica.profile] = rank
                ties[replica.profile] = [replica]
            elif rank == known:
                ties[replica.profile].append(replica)
        for tied in ties.values():
            yield tied[0] if len(tied) == 1 else min(tied, key=lambda replica: (self._age(replica), replica.name))

    def _age(self, replica: Replica) -> timedelta:
        return timedelta.max if replica.since is None else max(self.at - replica.since, timedelta())

    def turn(self, replica: Replica) -> tuple[bool, int, bool, Fraction, int, timedelta, str]:
        """Cordoned and outdated first, lowest profile priority, those that count 0 for removing, fewest tokens per unit,
        least loaded, youngest, name."""
        rating = self.tally.rating(replica)
        return (
            not self.leaves(replica),
            rating.profile.priority,
            rating.kept_concurrency > 0,
            rating.tokens_per_unit,
            load_of(self.tally, replica) or 0,
            self._age(replica),
            replica.name,
        )


def load_of(tally: Tally, replica: Replica) -> int | None:
    """The known load of a candidate; a starting one has none."""
    return 0 if replica.state == "starting" else tally.loads[replica.name]


def kept_capacity(found: Victims, victim: Replica) -> int:
    """What the ready ones that stay were measured to serve; doubtful evidence counts 0."""
    tally = found.tally
    total = sum(tally.ratings[profile].kept_concurrency * number for profile, number in tally.ready_by_profile.items())
    return total - tally.rating(victim).kept_concurrency if victim.state == "ready" else total


def removes_below(found: Victims) -> int | None:
    """The smallest whole number not below fraction × what stays without the first victim; None where none would go."""
    tally = found.tally
    victim = found.first
    if victim is None or tally.live <= max(tally.model.min_replicas, 1):
        return None
    line = found.fraction * kept_capacity(found, victim)
    return -(-line.numerator // line.denominator) or None


def refusal(found: Victims, victim: Replica) -> str | None:
    """Why the rest cannot do without `victim` (a reason code), None where it can. Loads and peak are known."""
    tally = found.tally
    peak = tally.peak
    load = load_of(tally, victim)
    if peak is None or load is None:
        return "metrics_unknown"
    capacity = kept_capacity(found, victim)
    share, whole = found.fraction.numerator, found.fraction.denominator
    if whole * peak >= share * capacity:
        if victim.state == "starting":
            return "starting_covers"
        return _doubted(tally, victim) or "rest_over_threshold"
    if load and not all(_stays_under(found, load, capacity, survivor) for survivor in tally.ready if survivor is not victim):
        return _doubted(tally, victim) or "survivor_over_threshold"
    return None


def _stays_under(found: Victims, load: int, capacity: int, survivor: Replica) -> bool:
    """own load + load × c / capacity < fraction × c, multiplied out to whole numbers; the share is by capacity."""
    concurrency = found.tally.rating(survivor).kept_concurrency
    own = found.tally.loads[survivor.name] or 0
    after = own * capacity + load * concurrency
    return found.fraction.denominator * after < found.fraction.numerator * concurrency * capacity


def _doubted(tally: Tally, victim: Replica) -> str | None:
    if any(tally.rating(survivor).doubtful for survivor in tally.ready if survivor is not victim):
        return "unmeasured"
    return None
