"""What an example consists of, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

# all windows shortened, so that two minutes show what hours show elsewhere; whole seconds
WINDOWS: Mapping[str, int] = {
    "down_window_seconds": 30,
    "stale_after_seconds": 20,
    "start_timeout_seconds": 60,
    "unready_grace_seconds": 15,
    "drain_timeout_seconds": 20,
    "idle_seconds": 60,
    "wake_seconds": 30,
    "reclaim_wait_seconds": 10,
    "min_run_seconds": 60,
    "shrink_grace_seconds": 30,
    "node_silent_seconds": 20,
    "node_lost_seconds": 60,
    "brake_window_seconds": 60,
    "brake_stops": 4,
    "brake_starts": 12,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A profile and its measurement: so many units serve `capacity` requests in flight within the example's SLO."""

    name: str
    units: int
    template: str
    parameters: Mapping[str, str]
    capacity: int
    tokens_per_second: Decimal
    evidence: Mapping[str, Any]
    note: str
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A model of the example."""

    name: str
    scope: str
    slo: str
    ways: tuple[Way, ...]
    priority: int = 0
    max_replicas: int = 4
    sleeps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What it serves; `files`: name → text of what its processes read in its folder."""

    models: tuple[Served, ...]
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """`scopes`: scope → (parents, limit of the class's units). `contents` may measure this machine first, and raises
    ValidationError where it cannot."""

    pool: str
    node: str
    resource: str
    units: int
    account: str
    folder: str
    """Below the state folder; FOLDER.json is the flag by which the supervisor runs its processes."""
    scopes: Mapping[str, tuple[tuple[str, ...], int | None]]
    slos: Mapping[str, Mapping[str, Any]]
    """Name → the fields of its row. They go with the example where nobody else uses them."""
    contents: Callable[[], Contents]
    windows: Mapping[str, int] = field(default_factory=lambda: WINDOWS)
