"""Latencies from engines' histograms: how many were quick enough, and what came between two readings."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.domain.latency import Histogram, since, within

SEEN = Histogram(bounds=(0.1, 0.5, 1.0), counts=(10, 30, 30), count=34)


def histograms(buckets: int = 4) -> st.SearchStrategy[Histogram]:
    amounts = st.lists(st.integers(0, 10**6), min_size=buckets + 1, max_size=buckets + 1)
    bounds = tuple(0.25 * 2**power for power in range(buckets))
    return amounts.map(lambda found: made(bounds, [*accumulate(found)]))


def made(bounds: tuple[float, ...], counts: list[int]) -> Histogram:
    return Histogram(bounds=bounds, counts=tuple(counts[:-1]), count=counts[-1])


@pytest.mark.parametrize(
    ("seconds", "count"),
    [
        (0.1, 10.0),  # a bound is exact
        (0.5, 30.0),
        (0.3, 20.0),  # half the bucket's width, half its observations
        (0.05, 5.0),  # the first bucket begins at 0
        (0.0, 0.0),
        (-1.0, 0.0),
        (0.75, 30.0),  # an empty bucket adds none
        (1.0, 30.0),
        (7.0, 30.0),  # beyond the last bound nobody can say
        (float("inf"), 30.0),
    ],
)
def test_observations_within_a_bound_lie_evenly_inside_their_bucket(seconds, count):
    assert within(SEEN, seconds) == pytest.approx(count)


def test_a_histogram_without_buckets_says_nothing_of_any_bound():
    assert within(Histogram(bounds=(), counts=(), count=9), 1.0) == 0.0


@given(histograms(), st.floats(0, 10), st.floats(0, 10))
def test_a_wider_bound_never_holds_fewer_and_none_holds_more_than_all(histogram, one, other):
    low, high = sorted((one, other))
    assert 0 <= within(histogram, low) <= within(histogram, high) <= histogram.count


@given(histograms(), histograms())
def test_what_came_after_a_reading_is_what_was_added(base, more):
    counts = tuple(a + b for a, b in zip(base.counts, more.counts, strict=True))
    now = Histogram(bounds=base.bounds, counts=counts, count=base.count + more.count)
    assert since(base, now) == more


@pytest.mark.parametrize(
    "now",
    [
        Histogram(bounds=SEEN.bounds, counts=(1, 2, 3), count=3),
        Histogram(bounds=SEEN.bounds, counts=(0, 40, 40), count=40),  # more in all than before, and yet a new start
        Histogram(bounds=SEEN.bounds, counts=(0, 0, 0), count=0),
    ],
)
def test_a_count_that_fell_is_a_restart_and_all_of_it_is_new(now):
    assert since(SEEN, now) == now


def test_other_buckets_are_another_engine_s_and_nobody_can_say():
    assert since(SEEN, Histogram(bounds=(0.1, 0.5), counts=(10, 30), count=34)) is None


@given(histograms(), histograms())
def test_nothing_observed_is_ever_negative(base, now):
    found = since(base, now)
    assert found is not None
    assert min(*found.counts, found.count) >= 0
