"""The rows of a pass as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from ..domain.probation import Target
from ..observation.sights import KnownNode

Problem = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    id: int
    known: KnownNode
    schedulable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """A model with its newest decision and the highest demand of its window (`peak_unknown`: a pass in it had no bound).

    `probation`: the watch over its last removal as stored; `targets`: its SLO's."""

    id: int
    name: str
    scope: str | None
    mode: str
    priority: int
    min_replicas: int
    max_replicas: int | None
    scale_to_zero: bool
    down_window_seconds: int | None
    drain_timeout_seconds: int | None
    scale_down_fraction: Fraction | None
    served_names: Sequence[str]
    woken_at: datetime | None
    last_change_at: datetime | None
    short_since: datetime | None
    disagree_since: datetime | None
    created_at: datetime
    demand_peak: int | None
    peak_unknown: bool
    decision: DecisionRow | None
    probation: Any
    removals_rest_until: datetime | None
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    id: int
    outcome: str
    reason: str
    count: int
    is_advice: bool
    numbers: Mapping[str, Any]
    limited_by: Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRow:
    id: int
    model: str
    name: str
    resource: str
    units: int
    hosts: int
    priority: int
    state: str
    start_timeout_seconds: int | None
    selector: Mapping[str, str]
    template: str
    parameters: Mapping[str, str]
    engine: str = ""
    engine_version: str = ""
    replacing_paused: bool = False
    measure: bool = False
    """A sweep waits for a replica of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRow:
    id: int
    name: str
    model: str
    profile: str
    nodes: tuple[str, ...]
    state: str
    since: datetime
    url: str
    removable: bool
    is_registered: bool
    devices: tuple[str, ...]
    """Of a registered one: those of the others are in their hosts' reports."""
    drained_for: str
    drain_reason: str
    intent: str
    intent_at: datetime | None
    ready_at: datetime | None
    seen_at: datetime | None
    fingerprint: str = ""
    """Of what it was started with; empty: unknown."""
    under_test: bool = False
    give_back: bool = False
    """It was started for a sweep that is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffRow:
    id: int
    profile_id: int
    node: str
    failures: int
    until: datetime
    exits: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    nodes: Mapping[str, NodeRow]
    models: Mapping[str, ModelRow]
    profiles: Mapping[tuple[str, str], ProfileRow]
    replicas: Mapping[str, ReplicaRow]
    backoffs: Sequence[BackoffRow]
    problems: tuple[Problem, ...] = field(default=())
