"""The watch over a removal: what is held against what, when it ends, and what is said of it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.domain.latency import Histogram
from capacity.domain.probation import Attained, Reading, Target, Watch, document, judged, read, renewed, sentence, served

THEN = datetime(2026, 11, 30, 14, 3, tzinfo=UTC)
LATER = THEN + timedelta(minutes=1)
END = THEN + timedelta(minutes=5)
P95 = Target(latency="ttft", percentile=95, bound_ms=500)


def counted(quick, slow=0):
    """So many within half a second, and so many beyond."""
    return {"ttft": Histogram(bounds=(0.1, 0.5, 1.0), counts=(quick, quick, quick + slow), count=quick + slow)}


def watch(**fields):
    given = {"replica": "c", "since": THEN, "until": END, "floor": 3, "base": {"a": counted(100), "b": counted(50, 50)}}
    return Watch(**{**given, **fields})


def look(now=LATER, targets=(P95,), old=None, **latencies):
    return judged(old or watch(), targets, latencies, now)


def test_only_what_came_after_the_removal_counts():
    found = look(a=counted(138), b=counted(107, 55)).attained[0]
    assert (found.within, found.count) == (95.0, 100)


@pytest.mark.parametrize(
    ("quick", "slow", "result"),
    [
        pytest.param(19, 1, "", id="exactly the target is within it"),
        pytest.param(18, 2, "failed", id="below it"),
        pytest.param(0, 19, "", id="too few to judge"),
        pytest.param(0, 20, "failed", id="just enough"),
        pytest.param(1000, 0, "", id="none was slow"),
    ],
)
def test_a_share_below_the_target_fails_at_once_where_enough_was_observed(quick, slow, result):
    assert look(a=counted(100 + quick, slow), b=counted(50, 50)).result == result


def test_what_a_sweep_made_counts_nothing_and_its_replica_counts_again_from_a_reading_after_its_end():
    ended = THEN + timedelta(seconds=40)

    def at(seconds, slow, swept, old):
        readings = {
            "a": Reading(at=THEN + timedelta(seconds=seconds), histograms=counted(100, slow)),
            "b": Reading(at=THEN + timedelta(seconds=seconds), histograms=counted(50 + seconds, 50)),
        }
        return served(old, readings, swept)

    during, found = at(20, 300, {"a": None}, watch())
    assert list(found) == ["b"] and judged(during, (P95,), found, LATER).is_open
    stale, found = at(39, 500, {"a": ended}, during)
    assert list(found) == ["b"] and stale.base["a"] == counted(100)
    after, found = at(45, 600, {"a": ended}, stale)
    assert after.based == {"a": THEN + timedelta(seconds=45)}
    assert judged(after, (P95,), found, LATER).attained[0].count == 45
    assert read(json.loads(json.dumps(document(after)))) == after
    later, found = at(50, 630, {"a": ended}, after)
    assert judged(later, (P95,), found, LATER).attained[0].count == 50 + 30


def test_one_that_was_started_for_a_sweep_counts_from_its_end_on():
    ended = THEN + timedelta(seconds=10)
    first, _ = served(watch(), {"n": Reading(at=LATER, histograms=counted(0, 900))}, {"n": ended})
    _, found = served(first, {"n": Reading(at=LATER, histograms=counted(7, 900))}, {"n": ended})
    assert judged(first, (P95,), found, LATER).attained[0].count == 7


@pytest.mark.parametrize(("percentile", "least"), [(50, 20), (95, 20), (96, 25), (99, 100)])
def test_one_slow_request_alone_never_fails_it(percentile, least):
    target = replace(P95, percentile=percentile)
    assert target.least_observed == least
    assert not Attained(target=target, within=least - 1, count=least).is_missed


@pytest.mark.parametrize(
    ("latencies", "result"),
    [
        ({"a": counted(120), "b": counted(50, 50)}, "held"),
        ({"a": counted(119), "b": counted(50, 50)}, "unknown"),
        ({"a": {}, "b": {}}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_at_the_end_it_held_or_nobody_can_say(latencies, result):
    found = look(now=END, **latencies)
    assert (found.result, found.decided_at) == (result, END)


def test_without_an_slo_nobody_can_say():
    assert look(now=END, targets=(), a=counted(500)).result == "unknown"


def test_any_target_that_is_missed_fails_it():
    e2e = Target(latency="e2e", percentile=90, bound_ms=2000)
    slow = {"e2e": Histogram(bounds=(1.0, 2.0), counts=(0, 10), count=40)}
    old = watch(base={"a": {**counted(0), "e2e": Histogram(bounds=(1.0, 2.0), counts=(0, 0), count=0)}})
    found = look(old=old, targets=(P95, e2e), a={**counted(40), **slow})
    assert found.result == "failed"
    assert [row.is_missed for row in found.attained] == [False, True]


def test_of_a_replica_that_was_there_uncounted_nothing_counts():
    old = watch(base={"a": {}})
    assert look(old=old, a=counted(0, 500)).attained[0].count == 0


def test_of_a_replica_that_came_later_all_counts():
    assert look(new=counted(0, 20)).result == "failed"


def test_an_engine_that_began_anew_counts_from_its_start():
    assert look(a=counted(30), b=counted(50, 50)).attained[0].count == 30


def test_latencies_that_cannot_be_read_leave_what_was_seen():
    seen = look(a=counted(130), b=counted(50, 50))
    assert judged(seen, (P95,), None, LATER) == seen
    assert judged(seen, (P95,), None, END).result == "held"


@pytest.mark.parametrize("result", ["held", "failed", "unknown"])
def test_a_verdict_stands(result):
    done = watch(result=result, decided_at=LATER)
    assert judged(done, (P95,), {"a": counted(0, 500)}, END) == done


def test_a_removal_during_the_watch_of_another_is_watched_with_it():
    second = watch(replica="d", since=LATER, until=END + timedelta(minutes=1), floor=2, base={"a": counted(170)})
    both = renewed(second, watch())
    assert (both.replica, both.since, both.until, both.floor) == ("d", THEN, second.until, 3)
    assert both.base["a"] == counted(100)
    assert renewed(second, watch(result="held", decided_at=LATER)) == second == renewed(second, None)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            look(a=counted(239, 4), b=counted(50, 50)),
            "The removal of c on 30 Nov at 14:03 is watched until 14:08 UTC: "
            "97.2 % of 143 observations within 500 ms TTFT, target 95 %.",
        ),
        (
            look(a=counted(100, 1), b=counted(50, 50)),
            "The removal of c on 30 Nov at 14:03 is watched until 14:08 UTC: "
            "0 % of 1 observation within 500 ms TTFT, target 95 %, too few to judge (at least 20).",
        ),
        (
            look(a=counted(1048, 51), b=counted(50, 50)),
            "The removal of c on 30 Nov at 14:03 was taken back at 14:04 UTC: "
            "94.8 % of 999 observations within 500 ms TTFT, target 95 %.",
        ),
        (
            look(now=END, a=counted(200), b=counted(50, 50)),
            "The removal of c on 30 Nov at 14:03 held at 14:08 UTC: 100 % of 100 observations within 500 ms TTFT, target 95 %.",
        ),
        (
            look(now=END),
            "The removal of c on 30 Nov at 14:03 was watched without a verdict: its engines have reported no latencies since.",
        ),
        (
            look(now=END, targets=()),
            "The removal of c on 30 Nov at 14:03 was watched without a verdict: "
            "the model has no SLO, or its engines' latencies were not read.",
        ),
    ],
)  # fmt: skip
def test_it_is_said_in_numbers(found, words):
    assert sentence(found) == words


def test_what_is_stored_is_read_back():
    for found in (watch(), look(a=counted(130), b=counted(50, 50))):
        assert read(json.loads(json.dumps(document(found)))) == found
    done = look(now=END, a=counted(130), b=counted(50, 50))
    assert read(json.loads(json.dumps(document(done)))) == replace(done, base={})


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_what_is_no_watch_is_none(stored):
    assert read(stored) is None


@pytest.mark.parametrize("field", ["replica", "since", "until", "floor", "base", "attained", "decided_at"])
@pytest.mark.parametrize("value", [[1], {"a": 1}, "x", 5])
def test_a_stored_watch_of_which_a_part_is_broken_breaks_nothing(field, value):
    read({**document(watch()), field: value})


@given(st.integers(0, 200), st.integers(0, 200), st.integers(1, 99), st.integers(0, 50))
def test_more_slow_requests_never_save_a_removal(quick, slow, percentile, more):
    target = replace(P95, percentile=percentile)
    before, after = (look(targets=(target,), new=counted(quick, number)) for number in (slow, slow + more))
    assert 0 <= after.attained[0].within <= after.attained[0].count == quick + slow + more
    assert before.result != "failed" or after.result == "failed"


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100), st.integers(0, 100))
def test_what_was_there_before_the_removal_changes_nothing(quick, slow, earlier_quick, earlier_slow):
    old = watch(base={"a": counted(earlier_quick, earlier_slow)})
    fresh = look(old=watch(base={}), a=counted(quick, slow))
    assert look(old=old, a=counted(earlier_quick + quick, earlier_slow + slow)).attained == fresh.attained
