"""What is too little for all is shared out in whole units, in proportion or step by step."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.domain.shares import Claimant, fill, in_proportion


@pytest.mark.parametrize(
    ("total", "claims", "expected"),
    [
        (10, {"a": 6, "b": 6, "d": 3}, {"a": 4, "b": 4, "d": 2}),
        (12, {"a": 8, "b": 5, "d": 4}, {"a": 6, "b": 3, "d": 3}),
        (20, {"a": 6, "b": 6}, {"a": 6, "b": 6}),
        (1, {"b": 1, "a": 1}, {"a": 1, "b": 0}),
        (0, {"a": 3, "b": 0}, {"a": 0, "b": 0}),
        (0, {}, {}),
    ],
)
def test_shares_follow_the_claims_and_the_largest_remainder(total: int, claims: dict[str, int], expected: dict[str, int]) -> None:
    assert in_proportion(total, claims) == expected


@given(st.integers(0, 10**12), st.dictionaries(st.text("abc", max_size=3), st.integers(0, 10**12)))
def test_shares_are_within_the_claims_and_add_up(total: int, claims: dict[str, int]) -> None:
    shares = in_proportion(total, claims)
    assert sum(shares.values()) == min(total, sum(claims.values()))
    assert all(0 <= shares[name] <= claim for name, claim in claims.items())


Row = tuple[int, int, list[tuple[int, int]]]
ROWS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 1, 2, 3, 7]),
        st.integers(0, 6),
        st.lists(st.tuples(st.sampled_from([1, 1, 2, 4]), st.integers(1, 6)), max_size=2),
    ),
    max_size=5,
)


def one_by_one(left: int, rows: list[Row]) -> tuple[int, list[int]]:
    """The rule as it is said: one step at a time, to whoever has least for his weight."""
    totals = [total for _, total, _ in rows]
    for weighted in (True, False):
        waiting = {
            index: [size for size, count in steps for _ in range(count)]
            for index, (weight, _, steps) in enumerate(rows)
            if bool(weight) is weighted and steps
        }
        while waiting:
            index = min(waiting, key=lambda index: (Fraction(totals[index], rows[index][0] or 1), index))
            size = waiting[index].pop(0)
            if size > left:
                del waiting[index]
                continue
            left -= size
            totals[index] += size
            if not waiting[index]:
                del waiting[index]
    return left, totals


@given(st.integers(0, 25), ROWS)
def test_filling_is_what_it_would_be_one_step_at_a_time(left: int, rows: list[Row]) -> None:
    peers = [
        Claimant(name=str(index), weight=weight, total=total, steps=list(steps))
        for index, (weight, total, steps) in enumerate(rows)
    ]
    rest = fill(left, peers)
    assert (rest, [peer.total for peer in peers]) == one_by_one(left, rows)


def test_the_size_of_numbers_costs_nothing() -> None:
    peers = [Claimant(name=f"{n:03}", weight=n % 7 * 10**11, total=0, steps=[(1, 10**12)]) for n in range(200)]
    assert fill(10**12, peers) == 0
    assert sum(peer.total for peer in peers) == 10**12
    assert all(peer.total == 0 for peer in peers if peer.name == "007")
