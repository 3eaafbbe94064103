"""What a model holds, what it is asked, and what it was measured to serve: the numbers behind a decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from capacity.domain.clock import earlier, later, reached
from capacity.domain.placement import Rating
from capacity.domain.types import UNKNOWN, Model, Replica, Settings


@dataclass(slots=True, kw_only=True)
class Tally:
    """One model's replicas by state, and its demand and capacity in requests in flight.

    One under test, and one that goes back after it, are in no list: they are held, and that is all.
    `starting` and `unready` are those that are not stuck; `stuck` are the starting and unready ones that took too long;
    `lapsed` are those of `unready` that are past their grace and live no more.
    `live` is what the minimum sees, `held` what maximum, quotas and room see. `loads`: replica → known load or None.
    """

    model: Model
    ratings: Mapping[str, Rating]
    window_seconds: int
    held: int = 0
    live: int = 0
    ready: list[Replica] = field(default_factory=list)
    starting: list[Replica] = field(default_factory=list)
    unready: list[Replica] = field(default_factory=list)
    lapsed: list[Replica] = field(default_factory=list)
    stuck: list[Replica] = field(default_factory=list)
    draining: list[Replica] = field(default_factory=list)
    loads: dict[str, int | None] = field(default_factory=dict)
    held_by_profile: dict[str, int] = field(default_factory=dict)
    ready_by_profile: dict[str, int] = field(default_factory=dict)
    demand_low: int = 0
    demand_high: int | None = 0
    capacity_ready: int = 0
    capacity_starting: int = 0
    loads_known: bool = True

    @property
    def peak(self) -> int | None:
        """The highest demand of the window, that of now included; None where it is not known."""
        peak = self.model.demand_peak
        if peak is UNKNOWN or self.demand_high is None:
            return None
        return self.demand_high if peak is None else max(peak, self.demand_high)

    @property
    def at_max(self) -> bool:
        """Whether the model holds all that its maximum allows."""
        return self.model.max_replicas is not None and self.held >= self.model.max_replicas

    def rating(self, replica: Replica) -> Rating:
        return self.ratings[replica.profile]


def tally(model: Model, ratings: Mapping[str, Rating], replicas: Sequence[Replica], settings: Settings, at: datetime) -> Tally:
    """Count one model's replicas; each is looked at once."""
    own_window = model.down_window_seconds
    found = Tally(
        model=model,
        ratings=ratings,
        window_seconds=settings.down_window_seconds if own_window is None else own_window,
        held=len(replicas),
    )
    _sort_by_state(found, replicas, settings, at)
    _demand(found)
    _capacity(found)
    return found


def _sort_by_state(found: Tally, replicas: Sequence[Replica], settings: Settings, at: datetime) -> None:
    oldest, newest = earlier(at, settings.stale_after_seconds), later(at, settings.stale_after_seconds)
    loads, ready = found.loads, found.ready
    acts = found.model.mode == "auto"
    for replica in replicas:
        if replica.under_test or (replica.give_back and not acts and replica.state != "draining"):
            continue
        sampled_at = replica.sampled_at
        loads[replica.name] = replica.in_flight if sampled_at is None or oldest <= sampled_at <= newest else None
        if replica.state == "ready":
            ready.append(replica)
        elif replica.state == "draining":
            found.draining.append(replica)
        else:
            _place_unfinished(found, replica, settings, at)
    found.live += len(ready)
    found.held_by_profile = Counter([replica.profile for replica in replicas])
    found.ready_by_profile = Counter([replica.profile for replica in ready])


def _place_unfinished(found: Tally, replica: Replica, settings: Settings, at: datetime) -> None:
    """A starting or unready one is stuck after its start timeout; an unready one is live within its grace alone."""
    if reached(replica.since, at, found.rating(replica).start_timeout_seconds):
        found.stuck.append(replica)
    elif replica.state == "starting":
        found.starting.append(replica)
        found.live += 1
    else:
        found.unready.append(replica)
        if reached(replica.since, at, settings.unready_grace_seconds):
            found.lapsed.append(replica)
        else:
            found.live += 1


def _demand(found: Tally) -> None:
    """An unknown load counts low for adding and high for removing; what drains counts only for removing."""
    held = found.model.held_requests
    loads = found.loads
    ready_loads = [loads[replica.name] for replica in found.ready]
    found.demand_low = (held or 0) + sum(load for load in ready_loads if load is not None)
    unready = [*found.unready, *(replica for replica in found.stuck if replica.state == "unready")]
    found.loads_known = None not in ready_loads and all(loads[replica.name] is not None for replica in unready)
    if held is None:
        found.demand_high = None
        return
    found.demand_high = found.demand_low
    unknown: Sequence[Replica] = () if found.loads_known else [r for r in found.ready if loads[r.name] is None]
    for replica in (*unknown, *unready, *found.draining):
        load = loads[replica.name]
        highest = found.rating(replica).concurrency if load is None else load
        if highest is None:
            found.demand_high = None
            return
        found.demand_high += highest


def _capacity(found: Tally) -> None:
    """For adding: an unmeasured ready replica counts its own load, which neither helps nor hurts; a starting one nothing."""
    for profile, number in found.ready_by_profile.items():
        concurrency = found.ratings[profile].concurrency
        if concurrency is not None:
            found.capacity_ready += number * concurrency
        else:
            found.capacity_ready += sum(found.loads[r.name] or 0 for r in found.ready if r.profile == profile)
    found.capacity_starting = sum(found.rating(replica).concurrency or 0 for replica in found.starting)
