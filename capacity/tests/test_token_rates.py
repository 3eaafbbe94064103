"""Tokens a second between two readings of a counter."""

from __future__ import annotations

from datetime import timedelta

from capacity.ports import Sample
from capacity.tests.fleet import START
from capacity.token_rates import TokenRates


def sample(tokens: int | None, seconds: int) -> dict[str, Sample]:
    return {"r": Sample(in_flight=1, sampled_at=START + timedelta(seconds=seconds), output_tokens_total=tokens)}


def test_a_rate_needs_two_readings():
    rates = TokenRates()
    assert rates.rates("p", sample(100, 0)) == {}
    assert rates.rates("p", sample(400, 10)) == {"r": 30.0}


def test_a_counter_that_fell_began_anew_and_never_gives_a_negative_rate():
    rates = TokenRates()
    rates.rates("p", sample(1000, 0))
    assert rates.rates("p", sample(50, 10)) == {"r": 5.0}
    assert rates.rates("p", sample(150, 20)) == {"r": 10.0}


def test_the_same_reading_twice_is_no_rate_of_zero():
    rates = TokenRates()
    rates.rates("p", sample(100, 0))
    assert rates.rates("p", sample(100, 0)) == {}
    assert rates.rates("p", sample(200, 10)) == {"r": 10.0}


def test_pools_do_not_share_and_the_gone_are_forgotten():
    rates = TokenRates()
    rates.rates("p", sample(100, 0))
    assert rates.rates("q", sample(200, 10)) == {}
    rates.rates("p", {})
    assert rates.rates("p", sample(300, 20)) == {}
