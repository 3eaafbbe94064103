"""The snapshot and the plan as values: what exists, what was measured, what is asked for; and what is to be done.

Every dataclass may be built directly from database rows, without JSON. Defaults are those of an absent key. What was
read from outside is either a whole number or unknown (None), never a guess. Times are aware UTC datetimes; None means
what the field's comment says. Row-level rules of the document are in `capacity.domain.snapshot`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from fractions import Fraction
from typing import Final, Literal

from quotas.domain.types import Problem, Quota, Scope, Standing

Mode = Literal["auto", "advise", "paused", "add_only"]
ProfileState = Literal["active", "no_new", "retire"]
EvidenceStatus = Literal["current", "stale", "assumed"]
ReplicaState = Literal["starting", "ready", "unready", "draining"]
StaleUse = Literal["add_only", "use"]
Op = Literal["start", "undrain", "drain", "cancel"]
Outcome = Literal["add", "remove", "hold"]

MODES: Final[tuple[Mode, ...]] = ("auto", "advise", "paused", "add_only")
PROFILE_STATES: Final[tuple[ProfileState, ...]] = ("active", "no_new", "retire")
EVIDENCE_STATUSES: Final[tuple[EvidenceStatus, ...]] = ("current", "stale", "assumed")
REPLICA_STATES: Final[tuple[ReplicaState, ...]] = ("starting", "ready", "unready", "draining")
STALE_USES: Final[tuple[StaleUse, ...]] = ("add_only", "use")


class Unknown(Enum):
    """A value that is there and says nothing, where None already means "absent"."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One row a pool. `scale_down_fraction` is exact."""

    scale_down_fraction: Fraction = Fraction(7, 10)
    down_window_seconds: int = 300
    stale_after_seconds: int = 45
    start_timeout_seconds: int = 900
    unready_grace_seconds: int = 120
    drain_timeout_seconds: int = 600
    idle_seconds: int = 600
    wake_seconds: int = 120
    max_step_up: int = 4
    reclaim: bool = True
    reclaim_wait_seconds: int = 60
    min_run_seconds: int = 600
    shrink_grace_seconds: int = 300
    stale_measurements: StaleUse = "add_only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`resources`: class → whole units that healthy hardware offers."""

    name: str
    resources: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    schedulable: bool = True
    ready: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model and what is asked of it.

    `max_replicas` None is unbounded. `held_requests` None is unknown. `demand_peak` None means none was kept (the demand
    of now stands for it), UNKNOWN that one is there and cannot be read. `demand_seconds` None: the whole window is
    covered. `last_change_at` and `short_since` None: long ago, and not short before.

    `bounds_conflict` stands outside of the document: set it for a model whose stored row breaks min ≤ max (see
    `capacity.domain.snapshot.bounds_fault`). Such a model holds `bounds_conflict` and is otherwise left alone like a
    paused one, while what it holds still counts.
    """

    name: str
    scope: str | None = None
    mode: Mode = "auto"
    priority: int = 0
    min_replicas: int = 1
    max_replicas: int | None = None
    scale_to_zero: bool = False
    held_requests: int | None = 0
    last_arrival_at: datetime | None = None
    woken_at: datetime | None = None
    last_change_at: datetime | None = None
    demand_peak: int | Unknown | None = None
    demand_seconds: int | None = None
    short_since: datetime | None = None
    down_window_seconds: int | None = None
    drain_timeout_seconds: int | None = None
    scale_down_fraction: Fraction | None = None
    bounds_conflict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A way to run a model: one replica takes `units` of `resource` on each of `hosts` nodes that carry `selector`."""

    model: str
    name: str
    resource: str
    units: int
    hosts: int = 1
    priority: int = 0
    state: ProfileState = "active"
    selector: Mapping[str, str] = field(default_factory=dict)
    start_timeout_seconds: int | None = None
    measure: bool = False
    """A sweep waits for a replica of its own: one is started where nobody else needs the room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one replica was measured to do: `max_concurrency` requests in flight within the SLO (0: not even at no load),
    and output tokens a second at that concurrency, exact."""

    model: str
    profile: str
    max_concurrency: int
    tokens_per_second: Fraction
    status: EvidenceStatus = "current"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica as observed. `since` None is long ago, `sampled_at` None the snapshot's instant, `in_flight` None unknown."""

    name: str
    model: str
    profile: str
    nodes: tuple[str, ...]
    state: ReplicaState
    since: datetime | None = None
    in_flight: int | None = None
    sampled_at: datetime | None = None
    removable: bool = True
    under_test: bool = False
    """A sweep loads it: it holds its hardware, and neither serves nor counts as load until it is given back."""
    give_back: bool = False
    """It was started for a sweep that is over: drained, unless its model is `auto` and keeps or ends it like any other."""
    outdated: bool = False
    """It runs what its profile was before: replaced, then drained, like one on a cordoned node."""
    drained_for: str | None = None
    drain_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """No start of that profile on that node before `until`."""

    model: str
    profile: str
    node: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that a plan is made from. None for a list: that store could not be read, which is never the same as empty.

    Whoever builds one without `parse_snapshot` keeps its rules: names are unique, and every replica's model and profile,
    and every profile's model, are in it."""

    at: datetime
    settings: Settings = field(default_factory=Settings)
    nodes: tuple[Node, ...] | None = ()
    models: tuple[Model, ...] = ()
    profiles: tuple[Profile, ...] = ()
    measurements: tuple[Measurement, ...] | None = ()
    replicas: tuple[Replica, ...] | None = ()
    backoffs: tuple[Backoff, ...] = ()
    scopes: tuple[Scope, ...] | None = ()
    quotas: tuple[Quota, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedBy:
    """One thing that stopped more, as it stood then: its kind and the numbers of that kind."""

    kind: str
    facts: Mapping[str, str | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing to do. A start names `profile` and `nodes`, the others `replica`; `returned_for` is the model that a
    reclaimed replica is given back for; `advice`: decided and not to be done."""

    op: Op
    model: str
    reason: str
    profile: str
    nodes: tuple[str, ...] = ()
    replica: str | None = None
    returned_for: str | None = None
    advice: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided for a model, and the numbers behind it.

    Requests and capacities are whole numbers of requests in flight; `demand_high` None has no bound. Where the inventory
    could not be read the capacities are None: unknown, not 0.
    """

    model: str
    outcome: Outcome
    reason: str
    count: int
    demand_low: int
    demand_high: int | None
    capacity_ready: int | None
    capacity_starting: int | None
    adds_above: int | None
    removes_below: int | None
    limited_by: tuple[LimitedBy, ...]
    why: str
    rest_capacity: int | None = None
    """What the ready ones that stay were measured to serve if one were taken back; None where none would go. Not in the
    document: pages and charts show it."""
    wanted: int | None = None
    """Replicas that the model should have after this plan, placed or not; None where the inventory is unknown. Not in the
    document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A sweep that got no replica of its own, and why in one sentence."""

    model: str
    profile: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Actions in the order in which they are to be done, one decision a model by name, and what is wrong in what was read.

    Not in the document: `waiting` is told to the sweeps that wait, `standings` (by scope and class) to pages and metrics."""

    at: datetime
    actions: tuple[Action, ...]
    decisions: tuple[Decision, ...]
    problems: tuple[Problem, ...]
    waiting: tuple[Waiting, ...] = ()
    standings: tuple[Standing, ...] = ()
