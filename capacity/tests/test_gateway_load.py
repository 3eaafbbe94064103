"""The load that the example gateway makes."""

from __future__ import annotations

import json
import re

import pytest

from capacity.gateway.load_plan import BUILT_IN, LoadPlan, ModelLoad, parse_load_plan, share_at
from capacity.gateway.series import SERIES

# What the example's engines take for a request, in seconds: its in flight is this times its rate (Little).
CHAT_SECONDS = 4.2


def chat(second: float) -> float:
    return CHAT_SECONDS * BUILT_IN.per_second("chat", second)


def test_the_series_go_from_0_to_100_and_are_long_enough_to_look_real():
    for numbers in SERIES.values():
        assert (min(numbers), max(numbers)) == (0, 100)
        assert 60 <= len(numbers) <= 120


def test_a_series_is_read_in_straight_lines_and_round_at_its_end():
    assert [share_at((0, 100), position) for position in (0, 0.25, 0.5, 0.75, 1.0, 1.25, -0.25)] == [0, 0.5, 1, 0.5, 0, 0.5, 0.5]


def test_within_a_minute_chat_outgrows_one_replica_of_8_and_two():
    assert chat(0) < 8
    assert max(chat(second) for second in range(60)) > 16


def test_before_two_minutes_are_over_the_rest_of_chat_s_replicas_would_be_under_70_percent():
    assert max(chat(second) for second in range(76, 112)) < 0.7 * 16
    assert max(chat(second) for second in range(115, 160)) < 0.7 * 8


def test_summarize_sleeps_is_woken_in_the_40th_second_and_left_alone_again():
    rates = [BUILT_IN.per_second("summarize", second) for second in range(240)]
    assert not any(rates[:40])
    assert all(rates[40:70])
    assert not any(rates[70:])


def test_the_load_goes_on_for_ever_in_cycles_of_four_to_six_minutes():
    assert 240 <= BUILT_IN.cycle_seconds <= 360
    for model in BUILT_IN.models:
        again = 1_000 * BUILT_IN.cycle_seconds + 47
        assert BUILT_IN.per_second(model, again) == pytest.approx(BUILT_IN.per_second(model, 47))


def test_a_plan_is_read_from_its_file():
    text = '{"cycle_seconds": 60, "models": {"m": {"series": "long_context", "high_per_second": 3, "output_tokens": 9}}}'
    loads = {"m": ModelLoad(series="long_context", high_per_second=3.0, output_tokens=9)}
    assert parse_load_plan(text) == LoadPlan(cycle_seconds=60, models=loads)


def model(**changes: object) -> str:
    return json.dumps({"models": {"m": {"high_per_second": 1, **changes}}})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON (line 1)"),
        ("{\n{", "not JSON (line 2)"),
        ("[" * 100_000, "not JSON"),
        ("[]", "$ must be an object"),
        ("{}", "$.models must name at least one model"),
        ('{"models": {}}', "$.models must name at least one model"),
        ('{"models": {"m": []}}', "$.models.m must be an object"),
        ('{"models": {"m": {}}}', "$.models.m.high_per_second is required"),
        ('{"modles": {}}', "unknown key 'modles'"),
        (model(scale=1), "$.models.m has an unknown key 'scale'"),
        (model(series="no"), "$.models.m.series must be one of conversation, long_context"),
        (model(series=[]), "$.models.m.series must be one of"),
        (model(high_per_second=-1), "$.models.m.high_per_second must be a number from 0 to 1000"),
        (model(high_per_second=float("nan")), "$.models.m.high_per_second must be a number"),
        (model(high_per_second=True), "$.models.m.high_per_second must be a number"),
        (model(output_tokens=0), "$.models.m.output_tokens must be a number from 1"),
        (model(output_tokens=2.5), "$.models.m.output_tokens must be a whole number from 1"),
        (model(phase="0"), "$.models.m.phase must be a number from 0 to 1"),
    ],
)
def test_a_bad_plan_is_refused_with_its_place(text, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_load_plan(text)
