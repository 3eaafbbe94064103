"""What the reconciler needs of the outside world: a driver that moves replicas, a source that reads loads.

A driver's failure is an `Outcome`, never an exception across this border. All times are aware UTC datetimes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from .domain.latency import Histogram as Histogram
from .domain.latency import Latency as Latency
from .domain.self_check import Counter as Counter

Op = Literal["start", "undrain", "drain", "cancel"]
ReportedState = Literal["starting", "ready", "unready", "draining", "exited"]
OutcomeKind = Literal["accepted", "refused", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One action for one replica, with the fencing `generation` of the pass that decided it.

    The replica's name is its identity: the same `start` twice is one replica. `installation`: whose pass it was;
    `taken_over_at_generation`: above which that one took the pool over from another, or from an older state of its own.
    """

    op: Op
    pool: str
    generation: int
    replica: str
    model: str
    profile: str
    nodes: tuple[str, ...]
    resource: str
    units: int
    template: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str = ""
    start_timeout_seconds: int = 900
    drain_timeout_seconds: int = 600
    installation: str = ""
    taken_over_at_generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`accepted`: will be done or is done already; `refused`: never (older generation, another installation, unknown template);
    `failed`: not done, `retryable` says whether asking again may help."""

    kind: OutcomeKind
    message: str = ""
    retryable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaReport:
    """A replica as its host sees it. `since` is when `state` began; `exited` ones stay for a while with their last words."""

    name: str
    model: str
    profile: str
    nodes: tuple[str, ...]
    resource: str
    units: int
    state: ReportedState
    since: datetime
    url: str | None = None
    generation: int = 0
    devices: tuple[str, ...] = ()
    fingerprint: str = ""
    was_ready: bool = False
    exit_code: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReport:
    """A device or slice as its host names it; memory None is unknown."""

    id: str
    resource: str
    product: str = ""
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """What a host says of itself. `resources`: class → whole healthy units that are offered (foreign ones are not);
    `foreign`: class → units held by processes that are not ours; `foreign_devices`: their devices, id → class, where the host
    can name them; `templates`: runtime template → its parameters, each with whether an order must give it; `generation`: the
    highest seen, per pool, and `installation` whose it was (empty: it does not say). `shown` (cores, memory_gib, machine) is for
    people and for telling machines apart, `labels` are what profiles may ask for."""

    node: str
    pool: str
    at: datetime
    resources: Mapping[str, int]
    foreign: Mapping[str, int] = field(default_factory=dict)
    replicas: tuple[ReplicaReport, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    generation: int = 0
    unknown_products: tuple[str, ...] = ()
    installation: str = ""
    foreign_devices: Mapping[str, str] = field(default_factory=dict)
    templates: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[DeviceReport, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Whose orders a host obeys, per pool: the highest generation it has seen, and of which installation (empty: of none yet)."""

    generation: int = 0
    installation: str = ""

    def refusal(self, order: Order) -> str:
        """Why an order may not be done, else empty."""
        if order.generation < self.generation:
            return f"Generation {order.generation} is older than {self.generation}, which this host has seen."
        taken_over = order.taken_over_at_generation > self.generation
        if self.installation and order.installation != self.installation and not taken_over:
            other = order.installation or "that does not say which"
            return f"This host obeys installation {self.installation}, not another ({other}) that has not taken the pool over."
        return ""

    def after(self, order: Order) -> Fence:
        """The fence once that order was let through."""
        return Fence(generation=order.generation, installation=order.installation or self.installation)


class FleetDriver(Protocol):
    def observe(self, pool: str) -> Sequence[NodeReport] | None:
        """The last report of each node of the pool, however old; None where the store of reports cannot be read."""

    def unreadable(self, pool: str) -> Mapping[str, str]:
        """Node → why its report was left out of what `observe` last gave of the pool."""

    def apply(self, order: Order) -> Outcome:
        """Ask for an order. Idempotent by replica name; an order of an older generation or of another installation is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A replica's requests in flight (running + waiting), and its counters where the engine has them.

    `in_flight` None: the engine answered, but not this number. `latencies` and `counters` stand only in a
    fresh reading: `MetricSource.loads` leaves them out."""

    in_flight: int | None
    sampled_at: datetime
    output_tokens_total: int | None = None
    latencies: Mapping[Latency, Histogram] = field(default_factory=dict)
    counters: Mapping[Counter, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """A replica's latencies since its engine's start, read `at`, and its counts of tokens. What it does not count is absent."""

    at: datetime
    histograms: Mapping[Latency, Histogram]
    counters: Mapping[Counter, int] = field(default_factory=dict)


class MetricSource(Protocol):
    def loads(self, pool: str) -> Mapping[str, Sample] | None:
        """Replica name → newest sample; replicas never read are absent; None where the store cannot be read."""

    def latencies(self, pool: str, replicas: Collection[str]) -> Mapping[str, Latencies] | None:
        """Of those replicas, name → newest latencies, however old within the hour; those without any are absent; None where
        the store cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Whether an engine answers that no host of ours watches. `answered_at`: the last time that it did; `failed_since`: the
    first time since then that it did not (None: it does), and `reason` why, in a sentence without secrets."""

    answered_at: datetime | None = None
    failed_since: datetime | None = None
    reason: str = ""


class AnswerSource(Protocol):
    def answers(self, pool: str) -> Mapping[str, Answer] | None:
        """Registered engine → what asking it told; those never asked are absent; None where the store cannot be read."""
