"""What is seen of a site at one moment: the processes that really run, beside the rows that say what should."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A process that runs. `replica` None: its host has no record of it."""

    pid: int
    host: str
    model: str
    replica: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A replica that the database has as present. `created_at`: seconds since the epoch; `intent`: asked for, not seen done."""

    name: str
    model: str
    host: str
    state: str
    created_at: float
    intent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """No more than `most` (None: no bound) of these models together: replicas, or units of the class.

    `late_seconds`: so long an older number may still be gone by."""

    name: str
    models: frozenset[str]
    counts: Literal["replicas", "units"]
    most: int | None
    late_seconds: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """`offers`: units. `silent_seconds`: since its last report; None where it never reported or its clock is ahead."""

    name: str
    offers: int
    silent_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A model's newest decision, and what is asked of it."""

    outcome: str
    reason: str
    at_least: int
    mode: str = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """`at`: seconds since the epoch; `units`: model → units of each of its replicas; `passes`: made so far; `generations`: of the
    newest ones, in the order in which they were written."""

    at: float
    engines: tuple[Engine, ...] = ()
    rows: tuple[Row, ...] = ()
    bounds: tuple[Bound, ...] = ()
    hosts: Mapping[str, Host] = field(default_factory=dict)
    units: Mapping[str, int] = field(default_factory=dict)
    decided: Mapping[str, Decided] = field(default_factory=dict)
    passes: int = 0
    generations: tuple[int, ...] = ()
