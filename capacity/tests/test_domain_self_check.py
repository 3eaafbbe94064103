"""A measurement beside live latencies: what counts, when it is contradicted, and what is only said."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.domain.latency import Histogram
from capacity.domain.probation import Target
from capacity.domain.self_check import Finding, Reading, Shape, State, band, document, finding, folded, interval, key, read
from capacity.domain.self_check.gather import at_least, at_most
from capacity.tests.strategies import examples

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
BOUNDS = (0.25, 0.5, 1.0)
TTFT = Target(latency="ttft", percentile=95, bound_ms=500)


def histogram(quick: int, slow: int, bounds: tuple[float, ...] = BOUNDS) -> Histogram:
    return Histogram(bounds=bounds, counts=(quick, quick, quick + slow), count=quick + slow)


def reading(minute: float, quick: int = 0, slow: int = 0, **more: Any) -> Reading:
    found = histogram(quick, slow)
    return Reading(at=AT + timedelta(minutes=minute), **{"histograms": {"ttft": found, "e2e": found}, **more})


def minutes(count: int, quick: int, slow: int, where: Any = "below", target: Target = TTFT, state: State | None = None) -> State:
    """A state after so many minutes in each of which so many came."""
    state = state or State()
    for minute in range(1, count + 1):
        before = reading(minute - 1, quick * (minute - 1), slow * (minute - 1))
        came = interval(before, reading(minute, quick * minute, slow * minute), where)
        assert came is not None
        state = folded(state, key(128, [target]), [target], [came], AT + timedelta(minutes=minute))
    return state


def judged(state: State, target: Target = TTFT, measured: Shape | None = None) -> Finding:
    return finding(state, 128, [target], measured or Shape())


@pytest.mark.parametrize(
    ("loads", "where"),
    [
        ([0, 115], "below"), ([116], "between"), ([115, 116], "between"), ([154, 160], "above"), ([153, 170], "between"),
        ([], None), ([10, None], None),
    ],
)  # fmt: skip
def test_an_interval_is_of_the_load_that_it_had_all_the_time(loads: list[int | None], where: str | None) -> None:
    assert band(loads, 128) == where
    assert band(loads, 0) is None


@pytest.mark.parametrize(
    ("before", "now", "where"),
    [
        (None, reading(1, 5), "below"),
        (reading(0), reading(1, 5), None),
        (reading(0), reading(3.1, 5), "below"),
        (reading(1), reading(1, 5), "below"),
        (reading(0, 9), reading(1, 5), "below"),
        (reading(0, 9), reading(1, 4, 6), "below"),
        (reading(0, counters={"input_tokens": 9}), reading(1, 5, counters={"input_tokens": 3}), "below"),
        (reading(0), reading(1, 5, histograms={"ttft": histogram(1, 0, (0.1, 0.2, 0.3))}), "below"),
        (reading(0, histograms={"tpot": histogram(1, 0)}), reading(1, 5, histograms={"ttft": histogram(1, 0)}), "below"),
    ],
    ids=["first", "unknown load", "gap", "same reading", "restart", "restart below", "counter fell", "buckets", "version"],
)
def test_what_nobody_can_say_counts_nothing(before: Reading | None, now: Reading, where: Any) -> None:
    assert interval(before, now, where) is None


def test_a_measurement_is_contradicted_by_half_an_hour_below_its_concurrency() -> None:
    found = judged(minutes(31, 80, 20))
    assert found.kind == "optimistic"
    assert found.sentence == (
        "Below 90 % of its 128 requests in flight the SLO is missed: 80 % of 3100 observations within 500 ms TTFT, "
        "target 95 %, over 31 min."
    )


@pytest.mark.parametrize(
    "state",
    [
        minutes(29, 80, 20),
        minutes(31, 5, 1),
        minutes(60, 94, 6),
        minutes(60, 80, 20, "between"),
        minutes(60, 80, 20, "above"),
        minutes(9, 0, 100, state=minutes(50, 100, 0)),
    ],
    ids=["too short", "too few", "by chance", "near it", "above it", "one bad slot"],
)
def test_less_is_no_contradiction(state: State) -> None:
    assert judged(state).kind == ""


def test_what_is_still_met_well_above_is_said_as_pessimistic() -> None:
    assert judged(minutes(31, 99, 1, "above")).kind == "pessimistic"
    assert judged(minutes(31, 90, 10, "above")).kind == ""


def test_a_bucket_is_read_in_the_measurements_favour() -> None:
    found = Histogram(bounds=BOUNDS, counts=(3, 5, 9), count=10)
    assert [at_most(found, s) for s in (0.1, 0.25, 0.3, 0.5, 0.6, 1.0, 2.0)] == [3, 3, 5, 5, 9, 9, 10]
    assert [at_least(found, s) for s in (0.1, 0.25, 0.3, 0.5, 0.6, 1.0, 2.0)] == [0, 3, 3, 5, 5, 9, 9]
    assert judged(minutes(60, 0, 100, target=replace(TTFT, bound_ms=600)), replace(TTFT, bound_ms=600)).kind == ""


def shaped(**counters: int) -> State:
    """31 minutes of 10 finished requests each."""
    state = State()
    for minute in range(1, 32):
        before = reading(minute - 1, 10 * (minute - 1), counters={k: v * (minute - 1) for k, v in counters.items()})
        now = reading(minute, 10 * minute, counters={k: v * minute for k, v in counters.items()})
        came = interval(before, now, "between")
        assert came is not None
        state = folded(state, "x", [TTFT], [came], now.at)
    return state


@pytest.mark.parametrize(
    ("counters", "off"),
    [
        ({"input_tokens": 5120, "output_tokens": 1280}, ()),
        ({"input_tokens": 10240, "output_tokens": 640}, ()),
        ({"input_tokens": 10250}, ("requests have 1025 input tokens on average, measured with 512",)),
        ({"output_tokens": 630}, ("requests have 63 output tokens on average, measured with 128",)),
        ({"prefix_queries": 100, "prefix_hits": 50}, ()),
        ({"prefix_queries": 100, "prefix_hits": 80}, ("80 % of the input tokens lie in the prefix cache, measured with 20 %",)),
        ({"prefix_queries": 100, "prefix_hits": 120}, ()),
    ],
)
def test_requests_of_another_shape_than_measured_are_named(counters: dict[str, int], off: tuple[str, ...]) -> None:
    measured = Shape(input_tokens=512, output_tokens=128, prefix_hit_rate=0.2)
    assert judged(shaped(**counters), measured=measured).off_shape == off
    assert judged(shaped(**counters)).off_shape == ()


def test_another_concurrency_or_slo_begins_anew_and_hours_are_forgotten() -> None:
    state = minutes(31, 80, 20)
    assert folded(state, key(64, [TTFT]), [TTFT], [], AT + timedelta(minutes=32)).slots == ()
    assert folded(state, state.of, [TTFT], [], AT + timedelta(hours=7)).slots == ()
    assert folded(state, state.of, [TTFT], [], AT - timedelta(days=1)).slots == ()


def test_a_state_is_stored_as_it_is_and_one_that_ended_in_a_contradiction_begins_anew() -> None:
    state = minutes(31, 100, 0)
    assert read(document(state, judged(state), AT)) == state
    bad = minutes(31, 80, 20)
    assert read(document(bad, judged(bad), AT)) == State()


def slot(at: Any = "2026-11-30T12:00:00+00:00", seconds: Any = 60, count: Any = 1) -> dict[str, Any]:
    return {"kind": "", "of": "64", "slots": [[at, seconds, 0, 0, {"ttft": [count, 1]}, {}, {"requests": count}]]}


@pytest.mark.parametrize(
    "stored",
    [
        *({}, None, [], {"kind": "", "of": 1, "slots": [[1]]}, {"kind": "", "of": "", "slots": 3}),
        *(slot(at=odd) for odd in ("2026-11-30T12:00:00", "soon", None, 3)),
        *(slot(seconds=odd) for odd in (float("inf"), float("nan"), -1, 10**400, "x")),
        *(slot(count=odd) for odd in (float("inf"), float("nan"), -1, 10**400, [])),
    ],
)
def test_what_cannot_be_read_begins_anew(stored: Any) -> None:
    assert read(stored) == State()


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40), st.booleans()), min_size=1, max_size=90))
def test_what_meets_its_slo_in_each_interval_or_restarts_all_the_time_is_never_contradicted(rows: list[Any]) -> None:
    """Whatever comes and goes: an engine that always meets it, and counts that restart each minute."""
    state, had = State(), 0
    for minute, (quick, slow, restarts) in enumerate(rows, 1):
        good = min(slow, quick // 20)
        before = reading(minute - 1, had + quick + 1, slow * 9 + 1) if restarts else reading(minute - 1, had, 0)
        now = reading(minute, had, slow * 9) if restarts else reading(minute, had + quick, good)
        came = interval(before, now, "below")
        assert (came is None) == restarts
        had += quick
        state = folded(state, "x", [TTFT], [came] if came else [], AT + timedelta(minutes=minute))
    assert judged(state).kind == ""
    assert len(state.slots) <= 37
