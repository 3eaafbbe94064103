"""The answer of a sizing as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from capacity.domain.sizing.question import Question
from capacity.domain.types import EvidenceStatus, LimitedBy

VerdictWord = Literal["fits", "partial", "none", "unknown"]
EXITS: Mapping[VerdictWord, int] = {"fits": 0, "partial": 2, "none": 3, "unknown": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One profile of the finished fleet. `nodes`: one entry a replica started, each with a node a host. `units`: those added,
    of `resource`; `each`: what one replica serves in the demand's unit, None unmeasured; `measured` None: no evidence."""

    profile: str
    resource: str
    have: int
    add: int
    units: int
    units_each: int
    nodes: tuple[tuple[str, ...], ...]
    hosts: int
    each: Fraction | None
    tokens_each: Fraction | None
    measured: EvidenceStatus | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingUnits:
    """Units of a class beyond what still finds room, `on_one_node` of them together; `replicas` of `profile`."""

    resource: str
    units: int
    on_one_node: int
    profile: str
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingLimit:
    """By how much a limit above would be passed. `scope` None: the reader may not know whose."""

    scope: str | None
    target: str
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRow:
    """A limit over the model's replicas in a class of the plan: its use before and after the plan. What is borrowed is None:
    guarantees do not bind yet, so nobody knows what is within one."""

    scope: str
    target: str
    limit: int
    used: int
    after: int
    borrowed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TightRow:
    profile: str
    add: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The same question answered with one profile alone."""

    profile: str
    resource: str
    add: int
    units: int
    served: Fraction
    verdict: VerdictWord


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`served` and `share` are in the demand's unit (`question.unit`). `hold_line`: requests in flight under which one of the
    finished fleet is taken back, exact; `holds_until` the largest whole number that is under it. `raise_max_to`: the
    `max_replicas` that the rest would need, None where it does not bind. `fleet_tokens`: output tokens a second of the
    finished fleet, None where a profile of it is not measured. `on_empty_hardware`: what would be served if no other model
    held hardware, None where that says nothing new."""

    model: str
    at: str
    question: Question
    verdict: VerdictWord
    served: Fraction
    share: Fraction
    rows: tuple[PlanRow, ...]
    binding: tuple[LimitedBy, ...]
    missing: tuple[MissingUnits | MissingLimit, ...]
    raise_max_to: int | None
    path: tuple[PathRow, ...]
    hold_line: Fraction | None
    holds_until: int | None
    even_served: Fraction | None
    tight: tuple[TightRow, ...] | None
    alternatives: tuple[Alternative, ...]
    on_empty_hardware: Fraction | None
    fleet_tokens: Fraction | None
    notes: tuple[str, ...]

    @property
    def is_covered(self) -> bool:
        """Whether the demand with its headroom is served, the spare ones apart."""
        return self.served >= self.question.wanted

    @property
    def added(self) -> int:
        return sum(row.add for row in self.rows)

    @property
    def have(self) -> int:
        return sum(row.have for row in self.rows)
