"""What the quota rules read and answer: scopes, quota rows, claims of models, and the answers to "may it have one more?"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

MODEL_TARGET: Final = "model:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """An organisation, team, project or key. Every parent's limit binds; guarantees come through the funding parent,
    which is the first of `parents` where none is named."""

    name: str
    parents: tuple[str, ...] = ()
    funding_parent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One row: whole units of a class (or, for a `model:` target, replicas). None says nothing, 0 is a real zero."""

    scope: str
    target: str
    guarantee: int | None = None
    limit: int | None = None
    weight: int = 1
    lend: bool = True
    lowered_at: datetime | None = None

    @property
    def model(self) -> str | None:
        """The model whose replicas are counted, None for a row on a class."""
        return self.target[len(MODEL_TARGET) :] if self.target.startswith(MODEL_TARGET) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something wrong in what was read, which stops nothing: `subject` is kind:name, `detail` one sentence."""

    code: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a model holds before the pass, by class, whole units with all hosts counted.

    `units`, `replicas`: in every state. `leaving`, `replicas_leaving`: what of them drains or is ended by this pass;
    `returning`: of those, what gives room back that can be used. `using`: the others, as (units of one, how many), largest
    first. `short_since`: since when a need of it is stopped by quota or room, None: not before this pass.
    """

    model: str
    scope: str | None
    units: Mapping[str, int] = field(default_factory=dict)
    replicas: int = 0
    leaving: Mapping[str, int] = field(default_factory=dict)
    replicas_leaving: int = 0
    returning: Mapping[str, int] = field(default_factory=dict)
    using: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    priority: int = 0
    short_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitStop:
    """A limit that one more replica would pass, with the usage as it stands now, this pass's grants counted in."""

    scope: str
    target: str
    limit: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedStop:
    """Units that must stay free because `scope` is owed them."""

    scope: str
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A scope in one class as a pass found and left it, in whole units; only scopes that hold, want or are short of something.

    `held`: what all models below it hold in every state, each once, the pass's starts counted in (what limits see). The rest
    counts what comes through funding alone, without what drains: `firm` within what is assured to it, `lent` an idle guarantee
    of an ancestor's other scopes, `burst` beyond what it is entitled to; together they are what its models use. `entitled`:
    what they are entitled to now. `wanted`: what they use and ask for. `over_by`: how far `held` is over the smallest limit
    of its own rows; 0 where it is not.
    """

    scope: str
    resource: str
    held: int
    firm: int
    lent: int
    burst: int
    entitled: int
    wanted: int
    over_by: int = 0

    @property
    def short(self) -> int:
        """Units that it is entitled to and does not have."""
        return max(0, self.entitled - self.firm - self.lent)


def covers(target: str, resource: str) -> bool:
    """Whether a row on the path `target` binds the class `resource`, by segments: `gpu` covers `gpu/h100`, `gpu/h1` does not."""
    return resource == target or resource.startswith(target + "/")
