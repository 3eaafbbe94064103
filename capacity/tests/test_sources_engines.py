"""What engines' answers say: read leniently, unknown where in doubt, never a crash."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.sources.exposition import MAX_LINE_CHARACTERS, parse
from capacity.sources.reading import EngineReading, read_engine

VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 8.0
vllm:num_requests_waiting{engine="0",model_name="m"} 4.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 4.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:generation_tokens_total{engine="0",model_name="m"} 11043.0
vllm:generation_tokens_created{engine="0",model_name="m"} 1.79e+09
vllm:prompt_tokens_total{engine="0",model_name="m"} 8963.0
"""


def vllm(running: str = "8.0", waiting: str = "4.0") -> EngineReading:
    return read_engine(f"vllm:num_requests_running {running}\nvllm:num_requests_waiting {waiting}\n")


def test_requests_in_flight_are_those_that_run_and_those_that_wait():
    reading = read_engine(VLLM)
    assert (reading.engine, reading.running, reading.waiting, reading.in_flight) == ("vllm", 8, 4, 12)
    assert (reading.output_tokens_total, reading.prompt_tokens_total, reading.kv_usage_max) == (11043, 8963, 0.25)


def test_openmetrics_spells_its_samples_with_underscores():
    assert read_engine(VLLM.replace("\nvllm:", "\nvllm_") + "# EOF\n") == read_engine(VLLM)


def test_ranks_are_added_up_and_their_cache_is_not():
    second = VLLM.replace('engine="0"', 'engine="1"').replace("0.25", "0.75")
    reading = read_engine(VLLM + second)
    assert (reading.in_flight, reading.output_tokens_total) == (24, 22086)
    assert (reading.kv_usage_mean, reading.kv_usage_max) == (0.5, 0.75)


def test_a_series_that_comes_twice_counts_once_and_its_last_value_stands():
    assert read_engine(VLLM + VLLM.replace(" 8.0", " 9.0")).in_flight == 13


def test_a_number_under_two_names_counts_once():
    both = VLLM + VLLM.replace("\nvllm:", "\nray_vllm:") + VLLM.replace("kv_cache_usage_perc", "gpu_cache_usage_perc")
    assert read_engine(both) == read_engine(VLLM)
    assert read_engine(VLLM.replace("\nvllm:", "\nray_vllm_")).in_flight == 12
    assert read_engine(VLLM.replace("kv_cache_usage_perc", "gpu_cache_usage_perc")).kv_usage_max == 0.25


def test_preempted_requests_of_older_engines_are_in_flight():
    assert read_engine(VLLM + 'vllm:num_requests_swapped{model_name="m"} 2\n').in_flight == 14


def test_ranks_that_repeat_the_same_requests_count_once():
    rank = 'sglang:num_running_reqs{{dp_rank="{}",tp_rank="{}"}} 9\nsglang:num_queue_reqs{{dp_rank="{}",tp_rank="{}"}} 1\n'
    copies = "".join(rank.format(0, tp, 0, tp) for tp in range(8))
    shares = "".join(rank.format(dp, dp, dp, dp) for dp in range(2))
    assert read_engine(copies).in_flight == 10
    assert read_engine(shares).in_flight == 20


@pytest.mark.parametrize("value", ["NaN", "-nan", "+Inf", "-Inf", "-1", "2.5", "1e300", "1_000", "eight", '"8"', "0x8", ""])
def test_a_count_that_is_none_is_unknown_and_never_0(value):
    assert vllm(running=value).in_flight is None
    assert vllm(waiting=value).in_flight is None


@pytest.mark.parametrize(
    ("value", "count"), [("3", 3), ("3.0", 3), ("3e+000", 3), ("3.0 1700000000000", 3), ('3 # {a="b"} 0.4', 3)]
)
def test_a_whole_number_is_read_however_it_is_written(value, count):
    assert vllm(running=value).running == count


def test_one_rank_s_nonsense_makes_the_whole_unknown():
    assert read_engine(VLLM + VLLM.replace('engine="0"', 'engine="1"').replace(" 8.0", " NaN")).in_flight is None


def test_an_engine_that_says_half_is_in_flight_unknown():
    reading = read_engine("vllm:num_requests_running 3\n")
    assert (reading.engine, reading.running, reading.waiting, reading.in_flight) == ("vllm", 3, None, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html><body>vllm:num_requests_running 3</body></html>",
        "[]",
        '{"error": 1}',
        "\x00\xff",
        "# only\n# comments",
        "up 1\n",
    ],
)
def test_what_is_no_engine_s_answer_is_of_no_engine(text):
    assert read_engine(text) == EngineReading(engine=None)


def test_label_values_may_hold_anything():
    line = 'vllm:num_requests_running{model_name="a\\"b} 7 ,engine=\\"1\\"\\n",engine="0"} 3\n'
    assert parse(line, {"vllm_num_requests_running"}) == {
        "vllm_num_requests_running": {(("engine", "0"), ("model_name", 'a"b} 7 ,engine="1"\n')): 3.0}
    }


@pytest.mark.parametrize(
    "line",
    [
        'vllm:num_requests_running{a="' + "x" * MAX_LINE_CHARACTERS + '"} 5',
        'vllm:num_requests_running{engine="1"',
        "vllm:num_requests_running",
        'vllm:num_requests_running{engine="1} 5',
    ],
)
def test_a_line_that_is_no_sample_makes_its_own_metric_unknown_and_hurts_no_other(line):
    reading = read_engine(f"{line}\n{VLLM}")
    assert (reading.running, reading.waiting, reading.output_tokens_total) == (None, 4, 11043)


def test_quotes_that_never_close_are_read_in_a_moment():
    hostile = ('vllm:num_requests_running{a="' + '\\"a"' * 1_900 + "\n") * 250
    reading = read_engine(hostile + VLLM)
    assert (reading.running, reading.waiting) == (None, 4)


@given(st.text())
def test_no_text_whatever_crashes_the_reader(text):
    for written in (text, f"vllm:num_requests_running{text}\nvllm:num_requests_waiting{{{text}}} 3"):
        reading = read_engine(written)
        assert all(count is None or count >= 0 for count in (reading.running, reading.waiting))


@pytest.mark.parametrize(
    ("text", "counters"),
    [
        (
            'vllm:num_requests_running{engine="0"} 1\nvllm:prefix_cache_queries_total{engine="0"} 900\n'
            'vllm:prefix_cache_hits_total{engine="0"} 300\nvllm:prompt_tokens_total{engine="0"} 900\n',
            {"prefix_queries": 900, "prefix_hits": 300, "input_tokens": 900},
        ),
        (
            "vllm:num_requests_running 1\nvllm:gpu_prefix_cache_queries_total 8\nvllm:gpu_prefix_cache_hits_total 2\n",
            {"prefix_queries": 8, "prefix_hits": 2},
        ),
        (
            'sglang:num_running_reqs{tp_rank="0"} 1\nsglang:prompt_tokens_total{tp_rank="0"} 50\n'
            'sglang:prompt_tokens_total{tp_rank="1"} 50\nsglang:cached_tokens_total{tp_rank="0"} 20\n',
            {"input_tokens": 50, "prefix_queries": 50, "prefix_hits": 20},
        ),
        ("vllm:num_requests_running 1\n", {}),
    ],
)
def test_the_tokens_that_lay_in_the_prefix_cache_are_read_of_vllm_and_sglang(text, counters):
    assert read_engine(text).sample(datetime(2026, 11, 30, tzinfo=UTC)).counters == counters
