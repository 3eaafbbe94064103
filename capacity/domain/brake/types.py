"""The brake's values: bounds, what was counted, what a person pulled or released, and the verdict on a plan's actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from capacity.domain.types import Action

Rule = Literal["manual", "stops", "starts", "unready_together"]
Kind = Literal["stop", "start", "replacement", "death"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much passes in `window_seconds`: so many, or the share of what there is if that is more."""

    window_seconds: int = 600
    stops: int = 2
    stop_percent: int = 10
    starts: int = 8
    start_percent: int = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`count` things that happened to one model at one instant. Of starts `resource` and `units` (all of them together).

    `death`: replicas that had been ready and ended by themselves; `replacement`: exempt starts in their place. What a
    release let through (`is_released`) is not counted against the bounds: a person answers for it."""

    at: datetime
    kind: Kind
    model: str
    count: int = 1
    resource: str = ""
    units: int = 0
    is_released: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What a person let through beyond the bounds, until `until`: so many stops and starts of each model, and the models
    whose unready replicas may go. What was used of it is taken off."""

    until: datetime
    stops: Mapping[str, int] = field(default_factory=dict)
    starts: Mapping[str, int] = field(default_factory=dict)
    unready: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Manual:
    """A person's brake. `until` None: until it is released."""

    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """`count` of the `of` replicas that a model had turned unready within the short time."""

    count: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the rules look at. `ready`: replicas of the pool; `units`: class → units offered; `sizes`: (model, profile) → class
    and units that one replica takes; `unready`: names; `replaceable`: model → starts in the place of dead replicas that are
    exempt (see `exempt`)."""

    ready: int = 0
    units: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    unready: frozenset[str] = frozenset()
    together: Mapping[str, Together] = field(default_factory=dict)
    replaceable: Mapping[str, int] = field(default_factory=dict)
    events: Sequence[Event] = ()
    manual: Manual | None = None
    release: Release | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """`also`: under the manual brake, the rule that would withhold it without."""

    action: Action
    rule: Rule
    why: str
    also: Rule | None = None

    @property
    def is_for_unreadiness(self) -> bool:
        return "unready_together" in (self.rule, self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`events`: what is to be counted from now on; `release`: what is left of it, None once nothing is."""

    done: tuple[Action, ...]
    withheld: tuple[Withheld, ...]
    events: tuple[Event, ...]
    release: Release | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How many of a kind were counted in the window, and how many pass at most (of starts at least so many)."""

    stops: int
    stops_allowed: int
    starts: int
    starts_allowed: int
