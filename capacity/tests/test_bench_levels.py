"""Which level a sweep asks next."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.bench.levels import Tried, is_flat, knee, levels_left, next_level, parse_levels


def searched(limit: int, most: int, tokens=lambda level: None) -> list[Tried]:
    """The whole search over an engine that serves `limit` within its SLO."""
    tried: list[Tried] = []
    while (level := next_level(tried, levels=None, most=most)) is not None:
        tried.append(Tried(level=level, meets=level <= limit, tokens_per_second=tokens(level)))
        assert len(tried) < 100, "it does not end"
    return tried


@given(st.integers(0, 5000), st.integers(1, 4096))
def test_the_search_finds_the_limit_in_few_levels_and_asks_none_twice(limit, most):
    tried = searched(limit, most)
    asked = [row.level for row in tried]
    assert len(set(asked)) == len(asked)
    assert all(1 <= level <= most for level in asked)
    assert len(asked) <= 2 * math.ceil(math.log2(most)) + 2
    found = max((row.level for row in tried if row.meets), default=0)
    assert found == min(limit, most)
    if limit < most:
        assert limit + 1 in asked, "the level above it was seen to miss"


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_tokens_that_grow_with_the_level_and_stop_at_the_limit_do_not_end_the_search_early(limit, per_request):
    tried = searched(limit, 4096, tokens=lambda level: per_request * min(level, limit))
    assert max(row.level for row in tried if row.meets) == limit


@given(st.integers(0, 300), st.integers(1, 256))
def test_the_levels_left_are_never_none_while_there_are_some_and_never_too_many(limit, most):
    tried = searched(limit, most)
    for done in range(len(tried)):
        left = levels_left(tried[:done], levels=None, most=most)
        assert 1 <= left <= 1 + math.ceil(math.log2(most)) + 1
    assert levels_left(tried, levels=None, most=most) == 0


def test_a_search_under_an_slo_too_loose_to_miss_ends_where_tokens_stopped_growing_and_says_the_knee():
    tried = searched(4096, 4096, tokens=lambda level: 40.0 * min(level, 48))
    assert [row.level for row in tried] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert is_flat(tried)
    assert knee(tried) == 64


def test_one_doubling_without_growth_may_be_chance():
    rows = [Tried(level=1, meets=True, tokens_per_second=100), Tried(level=2, meets=True, tokens_per_second=101)]
    assert next_level(rows, levels=None, most=64) == 4
    assert knee(rows) == 1


def test_a_level_that_met_the_slo_above_one_that_missed_does_not_count():
    rows = [Tried(level=1, meets=True), Tried(level=2, meets=False), Tried(level=4, meets=True)]
    assert next_level(rows, levels=None, most=64) is None


def test_levels_that_were_named_are_asked_rising_each_once_whether_they_meet_it_or_not():
    levels = parse_levels(" 8, 1,2 ,8")
    assert levels == (1, 2, 8)
    rows = []
    while (level := next_level(rows, levels=levels, most=4)) is not None:
        assert levels_left(rows, levels=levels, most=4) == 3 - len(rows)
        rows.append(Tried(level=level, meets=False))
    assert [row.level for row in rows] == [1, 2, 8]


def test_auto_is_a_word():
    assert parse_levels(" Auto ") is None


@pytest.mark.parametrize("text", ["", "1,", "0", "1;2", "-1", "1.5", "4097", "²", "99999", ",".join(map(str, range(1, 66)))])
def test_levels_that_are_none_are_refused_in_a_sentence(text):
    with pytest.raises(ValueError, match=r"^(Levels are auto|At most 64).*\.$"):
        parse_levels(text)
