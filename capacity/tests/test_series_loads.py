"""Rows of samples become arrays: what was not seen stays unknown, and what is thinned keeps its extremes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.samples import pack
from capacity.series import epoch_seconds, from_samples, lines, stretches, thin

T0 = 1_800_000_000


def row(at, *replicas, demand=0, rest=None):
    """One pass; a replica is (key, in flight, capacity) or with a state."""
    packed = pack((key, load, capacity, None, state[0] if state else "ready") for key, load, capacity, *state in replicas)
    return (T0 + at, demand, rest, packed)


def test_a_load_is_the_share_of_the_replicas_own_measured_concurrency():
    loads = from_samples([row(0, (1, 32, 64), (2, 32, 128))], 15)
    assert loads.percent[:, 0].tolist() == [50.0, 25.0]


@pytest.mark.parametrize(
    ("in_flight", "capacity", "percent"),
    [(0, 0, 0.0), (3, 0, None), (3, None, None), (None, 64, None), (0, 64, 0.0)],
)
def test_no_load_is_zero_and_load_on_no_capacity_has_no_share(in_flight, capacity, percent):
    value = from_samples([row(0, (1, in_flight, capacity))], 15).percent[0, 0]
    assert np.isnan(value) if percent is None else value == percent


def test_a_replica_that_is_not_there_is_unknown_and_never_zero():
    loads = from_samples([row(0, (1, 5, 10)), row(15, (1, 5, 10), (2, 5, 10)), row(30, (2, 5, 10))], 15)
    assert np.isnan(loads.percent).tolist() == [[False, False, True], [True, False, False]]


def test_a_missing_pass_is_a_gap_that_is_unread():
    loads = from_samples([row(0, (1, 5, 10)), row(15, (1, 5, 10)), row(60, (1, 5, 10))], 15)
    assert (loads.at - T0).tolist() == [0, 15, 30, 60]
    assert np.isnan(loads.percent[0]).tolist() == [False, False, True, False]
    assert loads.unread.tolist() == [False, False, True, False]


def test_two_intervals_are_no_gap():
    loads = from_samples([row(0, (1, 5, 10)), row(30, (1, 5, 10))], 15)
    assert not loads.unread.any()


@pytest.mark.parametrize(("state", "unread"), [("ready", True), ("unready", True), ("starting", False), ("draining", False)])
def test_only_a_replica_that_should_answer_is_unread(state, unread):
    assert from_samples([row(0, (1, None, 10, state))], 15).unread.tolist() == [unread]


def test_the_rest_is_demand_over_the_capacity_of_those_that_would_stay():
    loads = from_samples(
        [row(0, (1, 9, 10), demand=9, rest=10), row(15, (1, 9, 10), demand=9), row(30, demand=None, rest=10)], 15
    )
    assert loads.rest[0] == 90.0
    assert np.isnan(loads.rest[1:]).all()


def test_no_rows_are_no_loads():
    assert from_samples([], 15).is_empty


def test_instants_are_read_from_the_text_of_either_database():
    assert epoch_seconds(["1970-01-01 00:01:00", "1970-01-01 00:01:00.25", "1970-01-01 00:01:00+00"]) == [60, 60, 60]


def test_csv_lines_name_every_reading_and_no_absence():
    loads = from_samples([row(0, (1, 5, 10)), row(15, (1, None, 10), (2, 1, None))], 15)
    assert list(lines(loads)) == [
        (T0, 1, 5.0, 10.0, 50.0, False),
        (T0 + 15, 1, None, 10.0, None, False),
        (T0 + 15, 2, 1.0, None, None, False),
    ]


def test_under_test_a_load_is_a_gap_that_is_marked_and_no_missing_reading():
    loads = from_samples([row(0, (1, 5, 10), (2, 1, 10)), row(15, (1, 40, 10, "under_test"), (2, 1, 10))], 15)
    assert np.isnan(loads.percent).tolist() == [[False, True], [False, False]]
    assert loads.tested.tolist() == [[False, True], [False, False]]
    assert not loads.unread.any()
    assert list(lines(loads))[2] == (T0 + 15, 1, None, 10.0, None, True)


def test_stretches_are_unbroken_runs():
    assert stretches(np.array([True, True, False, True])) == [(0, 1), (3, 3)]


VALUES = st.lists(st.one_of(st.none(), st.floats(0, 400, width=32)), min_size=1, max_size=900)


@given(VALUES, st.integers(10, 500))
def test_thinning_keeps_the_extremes_the_gaps_and_its_limit(values, limit):
    line = np.array([np.nan if value is None else value for value in values])
    kept = thin(line, limit)
    known = line[~np.isnan(line)]
    assert len(kept) <= limit
    assert (np.diff(kept) > 0).all()
    if known.size:
        assert np.nanmin(line[kept]) == known.min()
        assert np.nanmax(line[kept]) == known.max()
    first_known = int(np.flatnonzero(~np.isnan(line))[0]) if known.size else len(line)
    assert np.isnan(line[kept]).any() == np.isnan(line[first_known:]).any()
