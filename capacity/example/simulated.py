"""The first example: three models whose engines are simulators. Its figures fit the gateway's built-in load plan.

Each SLO is at bounds of the latency histograms, the median TPOT a little above what the engine states, so that a sweep finds
the stated capacity: with one request in flight more all of them miss it. Users come in crowds, so that a higher percentile would
be missed by one replica at 70 % of its load, and removals would rest.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from capacity.domain.measurement.document import evidence_of
from capacity.domain.measurement.judge import judge
from capacity.domain.measurement.types import Bound, Judgement, Setting, Slo, Stage, Sweep
from capacity.example.shape import Contents, Example, Served, Way
from capacity.gateway.load_plan import BUILT_IN

UNITS = 16
TTFT_PERCENTILE, TPOT_PERCENTILE = 95, 50
SECONDS = 60
STATED = "the simulator's own statement"


def _slo(ttft_ms: int, tpot_ms: int) -> Slo:
    return Slo(
        bounds=(
            Bound(latency="ttft", percentile=TTFT_PERCENTILE, ms=ttft_ms),
            Bound(latency="tpot", percentile=TPOT_PERCENTILE, ms=tpot_ms),
        )
    )


SLOS = {"chat": _slo(500, 50), "code": _slo(500, 25), "summarize": _slo(500, 50)}


def _way(model: str, name: str, *, units: int, capacity: int, ttft_ms: int, tpot_ms: int, priority: int = 0) -> Way:
    found = _judged(model, capacity, ttft_ms, tpot_ms)
    if found.measured is None:
        raise ValueError(found.why)
    return Way(
        name=name,
        units=units,
        priority=priority,
        template="simulator",
        parameters={"capacity": str(capacity), "ttft_ms": str(ttft_ms), "tpot_ms": str(tpot_ms), "load_seconds": "4"},
        capacity=found.measured.max_concurrency,
        tokens_per_second=Decimal(found.measured.tokens_per_second),
        evidence={**evidence_of(found, slo=SLOS[model]), "engine": "simulator", "tool": STATED},
        note="Stated by the engine simulator, which slows past this as a measured engine does.",
    )


def _judged(model: str, capacity: int, ttft_ms: int, tpot_ms: int) -> Judgement:
    """What a sweep would find: constant latencies up to the capacity, all of them growing with the load beyond."""
    load = BUILT_IN.models[model]
    setting = Setting(tool=STATED, model=model, engine="simulator", output_tokens=load.output_tokens)
    levels = sorted({1, max(1, capacity // 2), capacity, capacity + 1, capacity * 2})
    stages = tuple(_stage(level, load.output_tokens, max(1.0, level / capacity), ttft_ms, tpot_ms) for level in levels)
    return judge(Sweep(setting=setting, stages=stages), SLOS[model])


def _stage(level: int, output_tokens: int, slower: float, ttft_ms: int, tpot_ms: int) -> Stage:
    ttft, tpot = ttft_ms * slower, tpot_ms * slower
    return Stage(
        where=f"level {level}",
        asked=level,
        mean_in_flight=float(level),
        requests=int(level * SECONDS * 1000 / (ttft + output_tokens * tpot)),
        errors=0,
        seconds=float(SECONDS),
        # output tokens with all of them decoding
        tokens_per_second=round(level * 1000 / tpot, 3),
        ttft_ms={"p50": round(ttft), "p95": round(ttft)},
        tpot_ms={"p50": round(tpot, 1), "p95": round(tpot, 1)},
        flags=frozenset({"simulated"}),
    )


MODELS = (
    Served(
        name="chat",
        slo="example: chat",
        scope="example-product",
        priority=20,
        ways=(
            _way("chat", "wide", units=2, capacity=8, ttft_ms=200, tpot_ms=47, priority=10),
            _way("chat", "narrow", units=1, capacity=3, ttft_ms=200, tpot_ms=47),
        ),
    ),
    Served(
        name="code",
        slo="example: code",
        scope="example-tools",
        priority=10,
        ways=(_way("code", "wide", units=3, capacity=6, ttft_ms=300, tpot_ms=24),),
    ),
    Served(
        name="summarize",
        slo="example: summarize",
        scope="example-product",
        priority=0,
        sleeps=True,
        ways=(_way("summarize", "small", units=2, capacity=4, ttft_ms=300, tpot_ms=47),),
    ),
)


def _fields(slo: Slo) -> dict[str, Any]:
    """Of the row."""
    ms = {f"{bound.latency}_ms": int(bound.ms) for bound in slo.bounds}
    return {**ms, **{f"{bound.latency}_percentile": bound.percentile for bound in slo.bounds}}


SIMULATED = Example(
    pool="example",
    node="example-1",
    resource="sim",
    units=UNITS,
    account="example-gateway",
    folder="example",
    scopes={
        "example-org": ((), UNITS),
        "example-product": (("example-org",), None),
        "example-tools": (("example-org",), 6),
    },
    slos={f"example: {name}": _fields(slo) for name, slo in SLOS.items()},
    contents=lambda: Contents(models=MODELS),
)
