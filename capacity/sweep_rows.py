"""A measurement's evidence as rows for its table and its chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .domain.measurement.evidence import slo_of, sweep_of
from .domain.measurement.level import level, shown_level
from .domain.measurement.types import LATENCIES, Slo, Stage, Statistics
from .domain.measurement.verdict import Outcome, verdict
from .domain.measurement.words import flag_words


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """A stage as it was found, over all replicas together. `level`: what it is judged as, the setting of a closed loop that was
    kept; `in_flight` the mean that was measured. `outcome` None: there is no level or no SLO to judge it by. `said`: the figures
    that decided it. `of_all`: what is to be known of every stage of the sweep alike, said once."""

    stage: Stage
    level: float | None
    in_flight: float | None
    outcome: Outcome | None
    said: str
    is_chosen: bool
    of_all: tuple[str, ...] = ()

    @property
    def flags(self) -> list[str]:
        return flag_words(self.stage)

    @property
    def own_flags(self) -> list[str]:
        return [words for words in self.flags if words not in self.of_all]

    @property
    def latencies(self) -> list[tuple[str, Statistics]]:
        return [(latency, self.stage.statistics(latency)) for latency in LATENCIES]


def stage_rows(evidence: object) -> list[StageRow]:
    """By rising level; none where it was typed in."""
    sweep = sweep_of(evidence)
    if sweep is None or not isinstance(evidence, Mapping):
        return []
    slo, chosen = slo_of(evidence), evidence.get("chosen_concurrency")
    return _rows(sweep.stages, slo, chosen)


def stage_rows_of(stages: Iterable[Stage], slo: Slo | None, chosen: Stage | None) -> list[StageRow]:
    """Of a sweep that is not stored yet."""
    number = None if chosen is None else shown_level(chosen)
    return _rows(list(stages), slo, number)


def replicas_of(evidence: object) -> int:
    found: Any = evidence.get("replicas") if isinstance(evidence, Mapping) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 1


def _rows(stages: Sequence[Stage], slo: Slo | None, chosen: object) -> list[StageRow]:
    words = [flag_words(stage) for stage in stages]
    shared = tuple(text for text in words[0] if all(text in each for each in words)) if len(words) > 1 else ()
    return [_row(stage, slo, chosen, shared) for stage in stages]


def _row(stage: Stage, slo: Slo | None, chosen: object, of_all: tuple[str, ...]) -> StageRow:
    judgeable = slo is not None and level(stage) is not None
    found = verdict(stage, slo) if judgeable and slo else None
    return StageRow(
        stage=stage,
        level=level(stage),
        in_flight=shown_level(stage),
        outcome=found.outcome if found else None,
        said=found.said if found else "",
        is_chosen=chosen is not None and shown_level(stage) == chosen,
        of_all=of_all,
    )
