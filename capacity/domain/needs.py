"""What a model needs more of, and how far a pass has met it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction

from capacity.domain.clock import passed
from capacity.domain.load import Tally
from capacity.domain.placement import Purpose, Rating
from capacity.domain.types import Action, LimitedBy, Replica, Settings

Share = tuple[bool, Fraction]


def in_flight_of(rating: Rating) -> int:
    """What one replica gives to a need that is counted in requests in flight; unmeasured: nothing."""
    return rating.concurrency or 0


@dataclass(slots=True, kw_only=True)
class Need:
    """One model's need in one pass. `demand` and `capacity` move with what is granted; `stops` is what was in the way."""

    tally: Tally
    reason: str
    order: Sequence[Rating]
    floor: int
    wake: bool
    evacuate: bool
    promised: bool
    """A replica of another model drains for this one."""
    step: int
    demand: int
    capacity: int
    gives: Callable[[Rating], int] = in_flight_of
    """What one replica of a profile adds to `capacity`, in the unit of `demand`."""
    awaited: bool = False
    """Others give back for it, or would but for the wait."""
    added: int = 0
    started: int = 0
    wake_profile: Rating | None = None
    drained: dict[str, list[Replica]] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)
    stops: dict[tuple[str, ...], LimitedBy] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)
    """Profile → the reason for which it was last passed over."""

    @property
    def floor_open(self) -> bool:
        return self.added < self.floor

    @property
    def wake_open(self) -> bool:
        """At least one, and as many of one profile as serve what is held; one where that was not measured."""
        if not self.wake:
            return False
        measured = self.wake_profile is None or self.wake_profile.concurrency is not None
        return self.added == 0 or (measured and self.capacity < self.demand)

    @property
    def open(self) -> bool:
        """Whether anything is left to be granted."""
        if self.floor_open or self.wake_open:
            return True
        if self.evacuate:
            return self.added == 0
        return not self.wake and self.capacity < self.demand

    @property
    def unmet(self) -> int:
        """How many more it would take, counted in replicas of the first profile that was measured."""
        if not self.open:
            return 0
        concurrency = next((rating.concurrency for rating in self.order if rating.concurrency), None)
        load = -(-(self.demand - self.capacity) // concurrency) if concurrency and not self.evacuate else 0
        return max(1, self.floor - self.added, load)

    @property
    def purpose(self) -> Purpose:
        """What the next replica would be for."""
        if self.floor_open:
            return "floor"
        return "wake" if self.wake else "load"

    @property
    def first_purpose(self) -> Purpose:
        """What the first replica was to be for."""
        if self.floor:
            return "floor"
        return "wake" if self.wake else "load"

    @property
    def at_max(self) -> bool:
        most = self.tally.model.max_replicas
        return most is not None and self.tally.held + self.started >= most

    @property
    def within_max(self) -> bool:
        """Whether one that drains may be taken back: it is held already."""
        most = self.tally.model.max_replicas
        return most is None or self.tally.held + self.started <= most

    @property
    def share(self) -> Share:
        """The unmet share (demand − capacity) / capacity, as a sort key: no capacity first, then the largest."""
        if self.capacity == 0:
            return (False, Fraction(0))
        return (True, -Fraction(self.demand - self.capacity, self.capacity))

    @property
    def turn(self) -> tuple[int, bool, Fraction, str]:
        model = self.tally.model
        return (-model.priority, *self.share, model.name)


def need_of(tally: Tally, order: Sequence[Rating], promised: bool, settings: Settings, at: datetime) -> Need | None:
    """What the model needs, None where nothing. `promised`: a replica of another model drains for this one."""
    floor = max(0, tally.model.min_replicas - tally.live)
    wake = tally.live == 0 and _is_asked_for(tally, settings, at)
    over = tally.demand_low > tally.capacity_ready + tally.capacity_starting
    if not (floor or wake or over):
        return None
    reason = "below_min" if floor else "wake" if wake else "reclaim_fill" if promised else "over_capacity"
    return _need(tally, order, settings, at, reason=reason, floor=floor, wake=wake, promised=promised)


def replacement(tally: Tally, order: Sequence[Rating], settings: Settings, at: datetime) -> Need:
    """One replica for one that is to leave its node, or that is outdated."""
    return _need(tally, order, settings, at, reason="evacuate", evacuate=True)


def measuring(tally: Tally, rating: Rating, settings: Settings, at: datetime, started: int) -> Need:
    """One replica of that profile for a sweep, after `started` others of the model."""
    need = _need(tally, [rating], settings, at, reason="measure", floor=1)
    need.started = started
    return need


def _need(
    tally: Tally,
    order: Sequence[Rating],
    settings: Settings,
    at: datetime,
    *,
    reason: str,
    floor: int = 0,
    wake: bool = False,
    evacuate: bool = False,
    promised: bool = False,
) -> Need:
    return Need(
        tally=tally,
        reason=reason,
        order=order,
        floor=floor,
        wake=wake,
        evacuate=evacuate,
        promised=promised,
        step=max(settings.max_step_up, tally.live),
        demand=tally.demand_low,
        capacity=tally.capacity_ready + tally.capacity_starting,
        drained=_to_take_back(tally, at),
    )


def _is_asked_for(tally: Tally, settings: Settings, at: datetime) -> bool:
    model = tally.model
    if model.held_requests:
        return True
    asked = (model.last_arrival_at, model.woken_at)
    return any(moment is not None and not passed(moment, at, settings.wake_seconds) for moment in asked)


def _to_take_back(tally: Tally, at: datetime) -> dict[str, list[Replica]]:
    """Draining replicas by profile that were neither given back for another model nor ended as stuck and are not outdated;
    least loaded first (unknown last), then the latest to drain, then name."""
    own = (None, tally.model.name)
    free = [r for r in tally.draining if r.drained_for in own and r.drain_reason != "start_timeout" and not r.outdated]

    def turn(replica: Replica) -> tuple[bool, int, timedelta, str]:
        load = tally.loads[replica.name]
        age = timedelta.max if replica.since is None else max(at - replica.since, timedelta())
        return (load is None, load or 0, age, replica.name)

    found: dict[str, list[Replica]] = {}
    for replica in sorted(free, key=turn):
        found.setdefault(replica.profile, []).append(replica)
    return found
