"""Whether a stage meets an SLO, misses it, or leaves it unproven (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .figures import ms, over, share
from .level import error_share
from .types import LATENCIES, Bound, Slo, Stage, Statistics
from .words import LATENCY

Outcome = Literal["meets", "fails", "unproven"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`said`: the figures that decided it, as a part of a sentence."""

    stage: Stage
    outcome: Outcome
    said: str
    too_many_errors: bool = False


def verdict(stage: Stage, slo: Slo) -> Verdict:
    """Errors first: latencies cover what succeeded, and a server that collapses looks fast. Then a bound that is missed, then
    one that the file cannot prove."""
    failed = error_share(stage)
    if failed is not None and failed > slo.max_error_share:
        total = (stage.requests or 0) + (stage.errors or 0)
        said = f"{stage.errors} of {total} requests failed ({share(failed)}), over {share(slo.max_error_share)}"
        return Verdict(stage=stage, outcome="fails", said=said, too_many_errors=True)
    in_order = sorted(slo.bounds, key=lambda bound: LATENCIES.index(bound.latency))
    found = [_bound(stage, bound) for bound in in_order]
    for outcome in ("fails", "unproven"):
        said_so = [said for result, said in found if result == outcome]
        if said_so:
            return Verdict(stage=stage, outcome=outcome, said=" and ".join(said_so))
    return Verdict(stage=stage, outcome="meets", said=", ".join(said for _, said in found))


def _bound(stage: Stage, bound: Bound) -> tuple[Outcome, str]:
    """Equality meets it; figures are compared as they are, unrounded."""
    statistics = stage.statistics(bound.latency)
    name = f"{LATENCY[bound.latency]} p{bound.percentile}"
    value = statistics.get(f"p{bound.percentile}")
    if value is not None:
        return ("meets", f"{name} {ms(value)}") if value <= bound.ms else ("fails", f"{name} {over(value, bound.ms)}")
    higher = _higher(statistics, bound)
    if higher is not None:
        return "meets", f"{LATENCY[bound.latency]} {higher} {ms(statistics[higher])}"
    return "unproven", f"{name} is not in the file"


def _higher(statistics: Statistics, bound: Bound) -> str | None:
    """The lowest percentile above the bound's that is within it: it proves the bound. One that is over it proves nothing."""
    proving = [
        (float(name[1:]), name)
        for name, value in statistics.items()
        if name.startswith("p") and float(name[1:]) > bound.percentile and value <= bound.ms
    ]
    return min(proving)[1] if proving else None
