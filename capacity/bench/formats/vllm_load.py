"""How loaded a run of vLLM's client was, and the latencies that it found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capacity.bench.formats import values

Run = Mapping[str, Any]

FAR_ABOVE: Final = 10.0
"""A request rate that many times what came back did not hold the client up: its cap did."""
_QUEUE: Final = "including_client_queue"


def asked(run: Run) -> int | None:
    """The level of a closed loop: the cap of a client that sends as fast as it may. With a rate the cap is none."""
    return values.level(run.get("max_concurrency")) if _is_unpaced(run) else None


def in_flight(run: Run) -> float | None:
    """By Little's law: requests a second × mean end to end, which by rate may be estimated."""
    mean = latency(run, "e2el").get("mean") or (_estimated_ms(run) if asked(run) is None else None)
    return values.positive(values.product(_per_second(run), mean, 1e-3))


def latency(run: Run, name: str) -> dict[str, float]:
    """`ttft`, `tpot` or `e2el` → ms. From 0.33 on with the wait in the client's own queue, where the file has it."""
    found = values.statistics(values.ending(run, f"{name}_ms"))
    return {**found, **values.statistics(values.ending(run, f"{name}_{_QUEUE}_ms"))}


def flags(run: Run) -> dict[str, bool]:
    by_rate = asked(run) is None
    capped = by_rate and values.level(run.get("max_concurrency")) is not None
    return {
        "estimated": by_rate and "mean" not in latency(run, "e2el") and _estimated_ms(run) is not None,
        "client_queue": capped and not any(_QUEUE in str(key) for key in run),
    }


def _is_unpaced(run: Run) -> bool:
    """`inf` (also null, after reading), 1e9, or a rate far above what came back."""
    rate = values.number(run.get("request_rate"))
    if rate is None or rate >= values.UNLIMITED:
        return True
    came_back = _per_second(run)
    return came_back is not None and rate >= FAR_ABOVE * came_back


def _per_second(run: Run) -> float | None:
    found = values.positive(run.get("request_throughput"))
    return found or values.ratio(values.positive(run.get("completed")), values.positive(run.get("duration")))


def _estimated_ms(run: Run) -> float | None:
    """Mean TTFT + mean TPOT × the tokens after the first."""
    first, gap = latency(run, "ttft").get("mean"), latency(run, "tpot").get("mean")
    tokens = values.ratio(values.positive(run.get("total_output_tokens")), values.positive(run.get("completed")))
    if first is None or gap is None or tokens is None:
        return None
    return first + gap * max(0.0, tokens - 1)
