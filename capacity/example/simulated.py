"""The first example: three models whose engines are simulators. Its figures fit the gateway's built-in load plan."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from capacity.example.shape import Contents, Example, Served, Way

UNITS = 16


def _way(name: str, *, units: int, capacity: int, ttft_ms: int, tpot_ms: int, priority: int = 0) -> Way:
    return Way(
        name=name,
        units=units,
        priority=priority,
        template="simulator",
        parameters={"capacity": str(capacity), "ttft_ms": str(ttft_ms), "tpot_ms": str(tpot_ms), "load_seconds": "4"},
        capacity=capacity,
        # output tokens at `capacity`, all of them decoding
        tokens_per_second=Decimal(capacity * 1000) / tpot_ms,
        evidence={
            "engine": "simulator",
            "tool": "the simulator's own statement",
            "stages": _stages(capacity, ttft_ms, tpot_ms),
        },
        note="Stated by the engine simulator, which slows past this as a measured engine does.",
    )


def _stages(capacity: int, ttft_ms: int, tpot_ms: int) -> list[dict[str, Any]]:
    """What a sweep would find: constant latencies up to the capacity, all of them growing with the load beyond."""
    steps = sorted({1, max(1, capacity // 2), capacity, capacity * 2})
    return [_stage(capacity, ttft_ms, tpot_ms, concurrency) for concurrency in steps]


def _stage(capacity: int, ttft_ms: int, tpot_ms: int, concurrency: int) -> dict[str, Any]:
    slower = max(1.0, concurrency / capacity)
    return {
        "concurrency": concurrency,
        "tokens_per_second": round(concurrency * 1000 / (tpot_ms * slower), 3),
        "ttft_ms": round(ttft_ms * slower),
        "tpot_ms": round(tpot_ms * slower, 1),
        "errors": 0,
    }


MODELS = (
    Served(
        name="chat",
        scope="example-product",
        priority=20,
        ways=(
            _way("wide", units=2, capacity=8, ttft_ms=200, tpot_ms=40, priority=10),
            _way("narrow", units=1, capacity=3, ttft_ms=200, tpot_ms=40),
        ),
    ),
    Served(
        name="code",
        scope="example-tools",
        priority=10,
        ways=(_way("wide", units=3, capacity=6, ttft_ms=300, tpot_ms=30),),
    ),
    Served(
        name="summarize",
        scope="example-product",
        priority=0,
        sleeps=True,
        ways=(_way("small", units=2, capacity=4, ttft_ms=300, tpot_ms=50),),
    ),
)
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
    slo={"name": "example: interactive", "ttft_percentile": 95, "ttft_ms": 1000, "tpot_percentile": 95, "tpot_ms": 80},
    contents=lambda: Contents(models=MODELS),
)
