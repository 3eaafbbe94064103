"""An SLO as one line of text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.domain.measurement.slo_text import parse_slo, slo_text
from capacity.domain.measurement.types import Bound, Slo

from .strategies import examples

BOUNDS = st.builds(
    Bound,
    latency=st.sampled_from(["ttft", "tpot", "e2e"]),
    percentile=st.integers(1, 99),
    ms=st.integers(1, 10**9).map(float) | st.floats(0.001, 1e6).map(lambda ms: round(ms, 3)),
)
SLOS = st.builds(
    Slo,
    bounds=st.lists(BOUNDS, min_size=1, unique_by=lambda bound: bound.latency).map(
        lambda found: tuple(sorted(found, key=lambda bound: ["ttft", "tpot", "e2e"].index(bound.latency)))
    ),
    max_error_share=st.sampled_from([0.0, 0.01, 0.02, 0.125, 1.0]),
)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("ttft p95 500, tpot p95 50", "ttft p95 500, tpot p95 50"),
        ("TPOT p95 ≤ 50 ms ,ttft p99<=1000ms", "ttft p99 1000, tpot p95 50"),
        ("itl p95 50", "tpot p95 50"),
        ("e2e p50 1500.5, errors 2%", "e2e p50 1500.5, errors 2%"),
        ("ttft p95 500, errors ≤ 1 %", "ttft p95 500"),
        ("ttft p95 500,", "ttft p95 500"),
    ],
)
def test_it_is_read_however_it_is_written_and_shown_in_one_way(text: str, plain: str) -> None:
    assert slo_text(parse_slo(text)) == plain


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at least one bound"),
        ("errors 2%", "at least one bound"),
        ("ttft 500", "'ttft 500' is no bound"),
        ("ttft p95", "'ttft p95' is no bound"),
        ("ttft p95500", "'ttft p95500' is no bound"),
        ("latency p95 500", "'latency p95 500' is no bound"),
        ("ttft p0 500", "from p1 to p99"),
        ("ttft p100 500", "from p1 to p99"),
        ("ttft p95 0", "above 0"),
        ("ttft p95 -5", "is no bound"),
        ("ttft p95 nan", "is no bound"),
        ("ttft p99.9 500", "is no bound"),
        ("ttft p95 500, ttft p99 900", "one bound for ttft"),
        ("itl p95 500, tpot p99 900", "one bound for tpot"),
        ("ttft p95 500, errors 101%", "0 to 100 %"),
        ("ttft p95 500, errors 1%, errors 2%", "once"),
        ("ttft p95 500" * 100, "at most 200 characters"),
    ],
)
def test_nonsense_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as why:
        parse_slo(text)
    assert "\n" not in str(why.value)


@given(SLOS)
@examples(50)
def test_what_is_shown_is_read_as_the_same(slo: Slo) -> None:
    assert parse_slo(slo_text(slo)) == slo
