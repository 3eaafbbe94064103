"""What the last hours say of a measurement: contradicted, beaten, or made with other requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import Literal

from capacity.domain.phrases import number
from capacity.domain.probation import NAMES, Target
from capacity.domain.self_check.types import (
    DEVIATIONS,
    FACTOR,
    LEAST_OBSERVED,
    LEAST_SECONDS,
    LEAST_SHORTFALL,
    Finding,
    Shape,
    Slot,
    State,
)


def finding(state: State, concurrency: int, targets: Sequence[Target], measured: Shape) -> Finding:
    """What the last hours say of the measurement."""
    off = tuple(_off_shape(shape_of(state), measured))
    missed = [target for target in targets if _is_missed(state.slots, target)]
    if missed:
        said = "; ".join(_figures(state.slots, target, "below") for target in missed)
        minutes = sum(slot.seconds_below for slot in state.slots) / 60
        sentence = f"Below 90 % of its {concurrency} requests in flight the SLO is missed: {said}, over {minutes:.0f} min."
        return Finding(kind="optimistic", sentence=sentence, off_shape=off)
    if targets and all(_is_exceeded(state.slots, target) for target in targets):
        said = "; ".join(_figures(state.slots, target, "above") for target in targets)
        sentence = f"Above 120 % of its {concurrency} requests in flight the SLO is still met: {said}."
        return Finding(kind="pessimistic", sentence=sentence, off_shape=off)
    seen = [target for target in targets if _sum(state.slots, target, "below")[1]]
    said = "; ".join(_figures(state.slots, target, "below") for target in seen)
    return Finding(sentence=f"Below 90 % of its {concurrency} requests in flight: {said}." if said else "", off_shape=off)


def _sum(slots: Iterable[Slot], target: Target, where: Literal["below", "above"]) -> tuple[int, int]:
    rows = [(slot.below if where == "below" else slot.above).get(target.latency, (0, 0)) for slot in slots]
    return sum(quick for quick, _ in rows), sum(count for _, count in rows)


def _is_missed(slots: Sequence[Slot], target: Target) -> bool:
    quick, count = _sum(slots, target, "below")
    if sum(slot.seconds_below for slot in slots) < LEAST_SECONDS or count < LEAST_OBSERVED:
        return False
    wanted = target.percentile / 100
    margin = max(LEAST_SHORTFALL, DEVIATIONS * sqrt(wanted * (1 - wanted) / count))
    if quick / count + margin >= wanted:
        return False
    each = [slot.below[target.latency] for slot in slots if slot.below.get(target.latency, (0, 0))[1]]
    bad = sum(100 * quick < target.percentile * count for quick, count in each)
    return len(each) >= 3 and 3 * bad >= 2 * len(each)


def _is_exceeded(slots: Sequence[Slot], target: Target) -> bool:
    quick, count = _sum(slots, target, "above")
    enough = sum(slot.seconds_above for slot in slots) >= LEAST_SECONDS and count >= LEAST_OBSERVED
    return enough and 100 * quick >= target.percentile * count


def _figures(slots: Sequence[Slot], target: Target, where: Literal["below", "above"]) -> str:
    quick, count = _sum(slots, target, where)
    percent = int(1000 * quick / count) / 10
    bound = f"{target.bound_ms} ms {NAMES[target.latency]}, target {target.percentile} %"
    return f"{percent:g} % of {number(count, 'observation')} within {bound}"


def shape_of(state: State) -> Shape:
    """Mean lengths of the last hours; unknown before enough was seen."""
    total: dict[str, int] = {}
    for slot in state.slots:
        for name, value in slot.counts.items():
            total[name] = total.get(name, 0) + value
    requests, queries = total.get("requests", 0), total.get("prefix_queries", 0)
    if requests < LEAST_OBSERVED or sum(slot.seconds for slot in state.slots) < LEAST_SECONDS:
        return Shape()
    hits = total.get("prefix_hits")
    return Shape(
        input_tokens=total["input_tokens"] / requests if "input_tokens" in total else None,
        output_tokens=total["output_tokens"] / requests if "output_tokens" in total else None,
        prefix_hit_rate=hits / queries if hits is not None and queries and hits <= queries else None,
    )


def _off_shape(live: Shape, measured: Shape) -> Iterable[str]:
    for name, now, then in (
        ("input", live.input_tokens, measured.input_tokens),
        ("output", live.output_tokens, measured.output_tokens),
    ):
        if now is not None and then and not then / FACTOR <= now <= then * FACTOR:
            yield f"requests have {now:.0f} {name} tokens on average, measured with {then:.0f}"
    if live.prefix_hit_rate is None or measured.prefix_hit_rate is None:
        return
    # what must be computed is what costs: the share that was not in the cache
    now, then = 1 - live.prefix_hit_rate, 1 - measured.prefix_hit_rate
    if now > then * FACTOR or then > now * FACTOR:
        hit, before = live.prefix_hit_rate, measured.prefix_hit_rate
        yield f"{100 * hit:.0f} % of the input tokens lie in the prefix cache, measured with {100 * before:.0f} %"
