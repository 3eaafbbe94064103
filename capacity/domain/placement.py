"""Which profile comes first, and on which nodes a replica fits."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Literal

from capacity.domain.types import Backoff, Measurement, Node, Profile, Replica, Settings

Purpose = Literal["floor", "wake", "load"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """A profile with what is known of it.

    `concurrency` (requests in flight of one replica) counts for adding, None unmeasured; `kept_concurrency` counts for
    removing, where doubtful evidence (none, assumed, stale) counts 0. `tokens_per_unit` is exact, 0 unmeasured.
    """

    profile: Profile
    concurrency: int | None
    kept_concurrency: int
    doubtful: bool
    tokens_per_unit: Fraction
    start_timeout_seconds: int

    @property
    def name(self) -> str:
        return self.profile.name

    @property
    def units(self) -> int:
        """Units of one replica over all its hosts."""
        return self.profile.units * self.profile.hosts

    def serves(self, purpose: Purpose) -> bool:
        """Whether the profile may be started for it: unmeasured ones for no load, those measured 0 for the floor alone."""
        if purpose == "floor":
            return True
        if self.concurrency is None:
            return purpose == "wake"
        return self.concurrency >= 1

    def order(self) -> tuple[bool, int, bool, Fraction, int, str]:
        """Placement order: measured 0 last of all; priority; unmeasured last within it; tokens per unit; concurrency; name."""
        unable = self.concurrency == 0
        unmeasured = self.concurrency is None
        return (unable, -self.profile.priority, unmeasured, -self.tokens_per_unit, -(self.concurrency or 0), self.name)


def rate(profile: Profile, measurement: Measurement | None, settings: Settings) -> Rating:
    """What the profile's measurement counts for adding and for removing."""
    timeout = settings.start_timeout_seconds if profile.start_timeout_seconds is None else profile.start_timeout_seconds
    if measurement is None:
        return Rating(
            profile=profile,
            concurrency=None,
            kept_concurrency=0,
            doubtful=True,
            tokens_per_unit=Fraction(0),
            start_timeout_seconds=timeout,
        )
    usable = measurement.status == "current" or (measurement.status == "stale" and settings.stale_measurements == "use")
    return Rating(
        profile=profile,
        concurrency=measurement.max_concurrency,
        kept_concurrency=measurement.max_concurrency if usable else 0,
        doubtful=not usable,
        tokens_per_unit=measurement.tokens_per_second / (profile.units * profile.hosts),
        start_timeout_seconds=timeout,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """What is free for a profile where it did not fit: in all, on the best node, and the first back-off that ends."""

    free: int
    largest_free: int
    backoff_until: datetime | None


class _Shelf:
    """The nodes of one class that match one selector, sorted by free units, then name; only those with any."""

    __slots__ = ("names", "rows", "total")

    def __init__(self, free: Mapping[str, int], names: frozenset[str]) -> None:
        self.names = names
        self.rows = sorted((units, name) for name, units in free.items() if units > 0 and name in names)
        self.total = sum(units for units, _ in self.rows)

    def move(self, name: str, old: int, new: int) -> None:
        if old > 0:
            del self.rows[bisect_left(self.rows, (old, name))]
        if new > 0:
            insort(self.rows, (new, name))
        self.total += max(0, new) - max(0, old)


class Room:
    """Free units on the nodes that take new replicas (schedulable and ready), as the grants of a pass leave them."""

    __slots__ = ("_free", "_kept", "_nodes", "_resting", "_shelves", "_total")

    def __init__(self, nodes: Iterable[Node], backoffs: Iterable[Backoff], at: datetime) -> None:
        self._nodes = {node.name: node for node in nodes if node.schedulable and node.ready}
        self._free: dict[str, dict[str, int]] = {}
        for node in self._nodes.values():
            for resource, units in node.resources.items():
                self._free.setdefault(resource, {})[node.name] = units
        self._kept: dict[str, int] = {}
        self._total: dict[str, int] = {}
        self._shelves: dict[tuple[str, tuple[tuple[str, str], ...]], _Shelf] = {}
        self._resting: dict[tuple[str, str], dict[str, datetime]] = {}
        for backoff in backoffs:
            if at < backoff.until and backoff.node in self._nodes:
                self._resting.setdefault((backoff.model, backoff.profile), {})[backoff.node] = backoff.until

    def occupy(self, ratings: Mapping[str, Rating], replicas: Iterable[Replica]) -> None:
        """Count the replicas of one model: all hold hardware, and a starting one without a node yet keeps its units free.
        Before the first `find`."""
        profiles = {name: rating.profile for name, rating in ratings.items()}
        for replica in replicas:
            profile = profiles[replica.profile]
            free = self._free.get(profile.resource, {})
            for node in replica.nodes:
                if node in free:
                    free[node] -= profile.units
            if not replica.nodes and replica.state == "starting":
                self.keep_free(profile, 1)

    def free_units(self, resource: str) -> int:
        """What the class has free in all, the units kept for starting replicas included."""
        if resource not in self._total:
            self._total[resource] = sum(units for units in self._free.get(resource, {}).values() if units > 0)
        return self._total[resource]

    def beyond_kept(self, resource: str) -> int:
        """What the class has free beyond the units that starting replicas without a node will take."""
        return max(0, self.free_units(resource) - self._kept.get(resource, 0))

    def find(self, profile: Profile) -> tuple[str, ...] | None:
        """The nodes for one replica, best fit first (least free left, then name); None where it does not fit."""
        if self.beyond_kept(profile.resource) < profile.units * profile.hosts:
            return None
        resting = self._resting_of(profile)
        found: list[str] = []
        shelf = self._shelf(profile)
        for _, name in _from(shelf.rows, profile.units):
            if name not in resting:
                found.append(name)
                if len(found) == profile.hosts:
                    return tuple(found)
        return None

    def take(self, profile: Profile, nodes: Iterable[str]) -> None:
        """Count a replica on nodes that `find` gave, or that `release` freed. Nodes that take no new ones are passed over."""
        self._move(profile.resource, nodes, -profile.units)

    def release(self, profile: Profile, nodes: Iterable[str]) -> None:
        """Count a replica as gone from these nodes."""
        self._move(profile.resource, nodes, profile.units)

    def keep_free(self, profile: Profile, replicas: int) -> None:
        """So many more (or, below 0, fewer) starting replicas of the profile have no node yet."""
        self._kept[profile.resource] = self._kept.get(profile.resource, 0) + replicas * profile.units * profile.hosts

    def usable(self, profile: Profile, nodes: Iterable[str]) -> bool:
        """Whether the profile may be placed on any of these nodes once it is free."""
        shelf, resting = self._shelf(profile), self._resting_of(profile)
        return any(name in shelf.names and name not in resting for name in nodes)

    def _move(self, resource: str, nodes: Iterable[str], units: int) -> None:
        free = self._free.get(resource, {})
        self.free_units(resource)
        for name in nodes:
            if name not in free:
                continue
            old, new = free[name], free[name] + units
            free[name] = new
            for (shelved, _), shelf in self._shelves.items():
                if shelved == resource and name in shelf.names:
                    shelf.move(name, old, new)
            self._total[resource] += max(0, new) - max(0, old)

    def shortage(self, profile: Profile) -> Shortage:
        """What a profile that does not fit finds free over the nodes that it could use."""
        shelf = self._shelf(profile)
        resting = {name: until for name, until in self._resting_of(profile).items() if name in shelf.names}
        free = self._free.get(profile.resource, {})
        total = shelf.total - sum(max(0, free[name]) for name in resting)
        largest = next((units for units, name in reversed(shelf.rows) if name not in resting), 0)
        beyond = self.beyond_kept(profile.resource)
        ends = [until for name, until in resting.items() if free[name] >= profile.units]
        return Shortage(free=min(total, beyond), largest_free=min(largest, beyond), backoff_until=min(ends, default=None))

    def _resting_of(self, profile: Profile) -> Mapping[str, datetime]:
        return self._resting.get((profile.model, profile.name), {})

    def _shelf(self, profile: Profile) -> _Shelf:
        key = (profile.resource, tuple(sorted(profile.selector.items())))
        shelf = self._shelves.get(key)
        if shelf is None:
            free = self._free.get(profile.resource, {})
            names = frozenset(name for name in free if _carries(self._nodes[name], profile.selector))
            shelf = self._shelves[key] = _Shelf(free, names)
        return shelf


def _carries(node: Node, selector: Mapping[str, str]) -> bool:
    return all(node.labels.get(label) == text for label, text in selector.items())


def _from(rows: list[tuple[int, str]], units: int) -> Iterator[tuple[int, str]]:
    for index in range(bisect_left(rows, (units, "")), len(rows)):
        yield rows[index]
