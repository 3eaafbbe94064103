"""What llmgw would have done beside what ran: the plan itself, step by step over a recorded load.

The steps' demand is put on imagined replicas in shares of their capacity, and every step is one `plan()` of a snapshot of the
one model in mode auto, with its own bounds, timings and measurements. Room is that of the nodes given, otherwise empty; limits
are those of the scopes given. A drain is gone by the next step.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from capacity.domain.clock import earlier
from capacity.domain.plan import plan
from capacity.domain.types import Action, Decision, Model, Replica, ReplicaState, Snapshot
from quotas.domain.policy import QuotaPolicy, build_policy

WINDOW: Final = timedelta(days=14)
ENOUGH: Final = timedelta(days=7)
"""Recorded for less than this, a model is switched to act only with a reason."""
ASSUMED_START_SECONDS: Final = 300
"""How long a start is taken to last where none was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A recorded stretch of time. Steps that were not recorded, or whose load was not known, are absent.

    `seconds`: how much of it was recorded. Requests in flight and queued: `demand` is the highest of what was known,
    `demand_high` the highest with unknown ones at their capacity. Of what ran: `capacity` in requests of the ready ones, `held`
    replicas of all states, `units` by class.
    """

    at: datetime
    seconds: int
    demand: int
    demand_high: int
    capacity: int
    held: int
    units: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """`snapshot` holds the one model with its profiles, measurements, settings, scopes and quotas, and nodes without others'
    replicas; `running` profile and nodes of each replica that ran at the first step; `start_seconds` how long a start lasts."""

    snapshot: Snapshot
    running: Sequence[tuple[str, tuple[str, ...]]] = ()
    start_seconds: int = ASSUMED_START_SECONDS
    step_seconds: int = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The step in which demand exceeded capacity by the most requests."""

    at: datetime
    demand: int
    capacity: int


@dataclass(slots=True, kw_only=True)
class Side:
    """One column of the card. `unit_seconds` by class; `short_seconds`: demand was above the capacity of the ready ones."""

    adds: int = 0
    removals: int = 0
    unit_seconds: Counter[str] = field(default_factory=Counter)
    short_seconds: int = 0
    worst: Worst | None = None

    def account(self, step: Step, capacity: int, units: Mapping[str, int]) -> None:
        for resource, number in units.items():
            self.unit_seconds[resource] += number * step.seconds
        if step.demand <= capacity:
            return
        self.short_seconds += step.seconds
        if self.worst is None or step.demand - capacity > self.worst.demand - self.worst.capacity:
            self.worst = Worst(at=step.at, demand=step.demand, capacity=capacity)

    @property
    def short_minutes(self) -> float:
        return self.short_seconds / 60

    @property
    def unit_hours(self) -> dict[str, float]:
        return {resource: seconds / 3600 for resource, seconds in sorted(self.unit_seconds.items())}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard:
    """`kept`: what llmgw would have done, `ran`: what was there. Both over the same `covered_seconds`."""

    covered_seconds: int
    kept: Side
    ran: Side

    @property
    def covered_days(self) -> float:
        return self.covered_seconds / timedelta(days=1).total_seconds()


def as_written(model: Model) -> Model:
    """What people wrote of it, in mode auto, without anything that passes or gateways saw of it lately."""
    return replace(
        model,
        mode="auto",
        held_requests=0,
        last_arrival_at=None,
        woken_at=None,
        last_change_at=None,
        demand_peak=None,
        demand_seconds=None,
        short_since=None,
    )


def scorecard(steps: Sequence[Step], setup: Setup) -> Scorecard:
    """The card of recorded steps, oldest first. Pure: the same steps give the same card."""
    return Scorecard(covered_seconds=covered_seconds(steps), kept=_replayed(steps, setup), ran=_recorded(steps, setup))


def covered_seconds(steps: Iterable[Step]) -> int:
    return sum(step.seconds for step in steps)


def _recorded(steps: Sequence[Step], setup: Setup) -> Side:
    side = Side()
    before: int | None = None
    for step in steps:
        side.account(step, step.capacity, step.units)
        change = 0 if before is None else step.held - before
        side.adds += max(0, change)
        side.removals += max(0, -change)
        before = step.held
    return side


def _replayed(steps: Sequence[Step], setup: Setup) -> Side:
    side = Side()
    fleet = _Fleet(setup)
    for step in steps:
        decision = fleet.step(step, side)
        side.account(step, decision.capacity_ready or 0, fleet.units_held)
    return side


class _Fleet:
    """The imagined replicas in the course of the record."""

    def __init__(self, setup: Setup) -> None:
        snapshot = setup.snapshot
        self._setup = setup
        self._model: Model = as_written(snapshot.models[0])
        self._policy: QuotaPolicy = build_policy(snapshot.scopes or (), snapshot.quotas or ())
        self._profiles = {row.name: row for row in snapshot.profiles}
        self._weights = _weights(snapshot)
        own = self._model.down_window_seconds
        self._window = snapshot.settings.down_window_seconds if own is None else own
        self._peaks: deque[tuple[datetime, int]] = deque()
        self._since: datetime | None = None
        self._last: datetime | None = None
        self._number = 0
        self._replicas: list[Replica] = [self._new(profile, nodes, "ready", None) for profile, nodes in setup.running]
        self.units_held: Mapping[str, int] = {}

    def step(self, step: Step, side: Side) -> Decision:
        """One pass at the beginning of the step, with the load of the whole step."""
        self._begin(step)
        self._come_and_go(step.at)
        self._model = self._asked(step)
        self._replicas = self._loaded(step)
        found = plan(
            replace(self._setup.snapshot, at=step.at, models=(self._model,), replicas=tuple(self._replicas)), self._policy
        )
        self._apply(found.actions, step.at, side)
        self.units_held = self._units()
        return found.decisions[0]

    def _begin(self, step: Step) -> None:
        """What was not recorded is not known: the window begins anew after a gap."""
        if self._last is None or step.at - self._last > timedelta(seconds=self._setup.step_seconds):
            self._since = step.at
            self._peaks.clear()
        self._last = step.at
        self._peaks.append((step.at, step.demand_high))
        while self._peaks[0][0] < earlier(step.at, self._window):
            self._peaks.popleft()

    def _come_and_go(self, at: datetime) -> None:
        ready_after = timedelta(seconds=self._setup.start_seconds)
        there = [replica for replica in self._replicas if replica.state != "draining"]
        came = [r.name for r in there if r.state == "starting" and r.since is not None and at - r.since >= ready_after]
        if came:
            self._model = replace(self._model, last_change_at=at)
        self._replicas = [replace(r, state="ready", since=at) if r.name in came else r for r in there]

    def _asked(self, step: Step) -> Model:
        """Where nothing is ready to take the demand, the gateway holds it."""
        ready = any(replica.state == "ready" for replica in self._replicas)
        assert self._since is not None
        return replace(
            self._model,
            held_requests=0 if ready else step.demand,
            last_arrival_at=step.at if step.demand else self._model.last_arrival_at,
            demand_peak=max(peak for _, peak in self._peaks),
            demand_seconds=int((step.at - self._since).total_seconds()),
        )

    def _loaded(self, step: Step) -> list[Replica]:
        """The demand in whole requests, in shares of the capacity."""
        ready = [replica for replica in self._replicas if replica.state == "ready"]
        total = sum(self._weights[replica.profile] for replica in ready)
        loads, upto, given = {}, 0, 0
        for replica in ready:
            upto += self._weights[replica.profile]
            share = step.demand * upto // total - given
            loads[replica.name], given = share, given + share
        now = [(replica, loads.get(replica.name, 0)) for replica in self._replicas]
        return [replica if replica.in_flight == load else replace(replica, in_flight=load) for replica, load in now]

    def _apply(self, actions: Sequence[Action], at: datetime, side: Side) -> None:
        for action in actions:
            side.adds += action.op in ("start", "undrain")
            side.removals += action.op in ("drain", "cancel")
            self._do(action, at)
        if actions:
            self._model = replace(self._model, last_change_at=at)

    def _do(self, action: Action, at: datetime) -> None:
        if action.op == "start":
            self._replicas.append(self._new(action.profile, action.nodes, "starting", at))
        elif action.op == "cancel":
            self._replicas = [replica for replica in self._replicas if replica.name != action.replica]
        else:
            state: ReplicaState = "draining" if action.op == "drain" else "ready"
            self._replicas = [
                replace(r, state=state, since=at, drain_reason=action.reason) if r.name == action.replica else r
                for r in self._replicas
            ]

    def _new(self, profile: str, nodes: tuple[str, ...], state: ReplicaState, at: datetime | None) -> Replica:
        self._number += 1
        name = f"{self._number:06d}"
        return Replica(name=name, model=self._model.name, profile=profile, nodes=nodes, state=state, since=at)

    def _units(self) -> Mapping[str, int]:
        found: Counter[str] = Counter()
        for replica in self._replicas:
            row = self._profiles[replica.profile]
            found[row.resource] += row.units * row.hosts
        return found


def _weights(snapshot: Snapshot) -> dict[str, int]:
    """Profile → its measured concurrency; an unmeasured one weighs the smallest measured, else 1, as gateways are told."""
    measured = {row.profile: row.max_concurrency for row in snapshot.measurements or () if row.max_concurrency}
    least = min(measured.values(), default=1)
    return {row.name: measured.get(row.name, least) for row in snapshot.profiles}
