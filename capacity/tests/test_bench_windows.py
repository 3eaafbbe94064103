"""One level of a sweep as a window of answers: its figures, its client's lateness, and what the search makes of it."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import replace
from typing import Any

import pytest

from capacity.bench import summary
from capacity.bench.asked import Asked
from capacity.bench.closed_loop import ClosedLoop, Load, Window
from capacity.bench.facts import Counters, between
from capacity.bench.requests import FORMS, Prompts, body
from capacity.bench.stream import Answer
from capacity.domain.measurement.types import Bound, Slo
from capacity.sources.reading import EngineReading
from capacity.tests.bench_sites import BROKEN, LATE, meets, picky, served, swept


def answer(ttft: float = 0.1, e2e: float = 1.0, tokens: int = 10, **more: Any) -> Answer:
    return Answer(
        **{
            "began": 0.0,
            "ended": e2e,
            "ttft_seconds": ttft,
            "e2e_seconds": e2e,
            "chunks": tokens,
            "output_tokens": tokens,
            **more,
        }
    )


def window(*answers: Answer, **more: Any) -> Window:
    return Window(
        **{
            "level": 2,
            "seconds": 2.0,
            "answers": answers,
            "incomplete": 1,
            "mean_in_flight": 2.0,
            "chunks": 15,
            "busy": 0.1,
            **more,
        }
    )


ASKED = Asked(endpoint="http://x", model="m", slo=Slo(bounds=(Bound(latency="ttft", percentile=97, ms=100),)))


def test_percentiles_are_values_that_were_seen_and_the_slo_s_own_is_among_them():
    stage = summary.stage_of(window(*(answer(ttft=0.001 * one) for one in range(100, 0, -1))), ASKED)
    assert {name: round(value) for name, value in stage.ttft_ms.items()} == {
        "mean": 50, "p50": 50, "p90": 90, "p95": 95, "p97": 97, "p99": 99,
    }  # fmt: skip
    assert meets(stage, ASKED.slo)


def test_tokens_are_those_that_came_in_the_window_weighed_by_what_a_chunk_carries():
    stage = summary.stage_of(window(answer(tokens=30, chunks=10), answer(tokens=30, chunks=10)), ASKED)
    assert stage.tokens_per_second == 15 * 3 / 2
    assert (stage.requests, stage.errors, stage.incomplete, stage.flags) == (2, 0, 1, frozenset())


def test_errors_have_no_latency_and_no_success_is_no_latency_at_all():
    failed = answer(ttft=None, e2e=None, tokens=None, chunks=0, fault=BROKEN, ended=0.0)
    some = summary.stage_of(window(answer(), failed), ASKED)
    none = summary.stage_of(window(failed, failed), ASKED)
    assert (some.requests, some.errors, some.ttft_ms["mean"]) == (1, 1, 100)
    assert (none.requests, none.errors, none.ttft_ms, none.tokens_per_second) == (0, 2, {}, None)
    assert not meets(some, ASKED.slo) and not meets(none, ASKED.slo)


@pytest.mark.parametrize(
    ("ttft", "lag", "doubted", "flags"),
    [
        (0.105, 0.006, True, set()),  # 5 ms too late, of which the client may have been all
        (0.105, 0.004, False, set()),
        (0.095, 0.006, False, set()),  # it meets the SLO in spite of it
        (0.200, 0.011, False, {"weak"}),  # later than a tenth of the bound
    ],
)
def test_a_level_that_a_late_client_may_have_failed_is_in_doubt(ttft, lag, doubted, flags):
    late = window(*[answer(ttft=ttft)] * 3, lag_seconds=lag)
    assert summary.fails_by_lag(late, ASKED) is doubted
    assert summary.stage_of(late, ASKED).flags == flags
    assert summary.details_of(late)["client_lag_ms"] == 1000 * lag


def test_a_late_look_at_the_last_token_is_spread_over_all_gaps():
    asked = replace(ASKED, slo=Slo(bounds=(Bound(latency="tpot", percentile=50, ms=100),)))
    slow = answer(ttft=0.1, e2e=0.1 + 9 * 0.102, tokens=10)
    assert not summary.fails_by_lag(window(slow, lag_seconds=0.010), asked)
    assert summary.fails_by_lag(window(slow, lag_seconds=0.020), asked)


def test_a_client_that_wakes_up_late_knows_it():
    async def send(on_chunks: Any) -> Answer:
        time.sleep(0.03)
        await asyncio.sleep(0)
        return answer()

    load = Load(level=2, seconds=0.3, ramp_seconds=0.0, patience_seconds=5.0, max_error_share=0.01)
    assert asyncio.run(ClosedLoop(load, send).run()).lag_seconds >= 0.03


def test_a_level_in_doubt_is_measured_once_more_and_the_quieter_run_counts(monkeypatch):
    lags = iter([0.0, 0.05, 0.001, 0.0])
    truly = ClosedLoop._window

    def lagging(loop: ClosedLoop) -> Window:
        found = truly(loop)
        lag = next(lags)
        slow = [replace(row, ttft_seconds=LATE + lag) for row in found.answers] if lag else found.answers
        return replace(found, answers=slow, lag_seconds=lag)

    monkeypatch.setattr(ClosedLoop, "_window", lagging)
    slo = Slo(bounds=(Bound(latency="ttft", percentile=50, ms=1000 * LATE),))
    with served(picky(set())) as site:
        found = swept(site, slo=slo, levels=(1, 2), seconds=0.1)
    assert [stage.asked for stage in found.stages] == [1, 2]
    assert found.evidence["levels"]["2"]["client_lag_ms"] == 1.0
    assert found.evidence["levels"]["2"]["client_lag_ms_of_the_other_run"] == 50.0


def test_a_client_that_was_busy_all_the_time_may_have_been_what_was_measured():
    assert summary.stage_of(window(answer(), busy=0.95), ASKED).flags == {"weak"}


def test_what_the_engine_counted_is_a_rate_and_unknown_where_it_began_anew():
    before = Counters(reading=EngineReading(engine="vllm", output_tokens_total=100, prompt_tokens_total=5), hits=10, queries=100)
    after = Counters(reading=EngineReading(engine="vllm", output_tokens_total=300, prompt_tokens_total=1), hits=40, queries=200)
    assert between(before, after, 2.0) == {"engine_output_tokens_per_second": 100, "prefix_cache_hit_rate": 0.3}
    assert between(None, after, 2.0) == between(before, None, 2.0) == {}


def test_prompts_are_new_each_time_and_as_long_as_the_endpoint_counts():
    prompts = Prompts(chance=random.Random(1)).fitted((40, 90), (80, 170))
    assert (prompts.tokens_a_word, prompts.overhead) == (2, 10)
    texts = {prompts.text(110) for _ in range(50)}
    assert len(texts) == 50
    assert {len(text.split()) for text in texts} == {50}
    assert prompts.fitted((5, 9), (5, 9)) is prompts


def test_a_request_pins_its_length_in_the_words_that_the_endpoint_takes():
    documents = [body(ASKED, form, Prompts(), input_tokens=4, output_tokens=9).decode() for form in FORMS]
    assert '"ignore_eos": true, "min_tokens": 9' in documents[0] and '"max_tokens": 9' in documents[0]
    assert "ignore_eos" not in documents[1] and "include_usage" in documents[1]
    assert "include_usage" not in documents[2]
    assert '"max_completion_tokens": 9' in documents[3]


def test_the_window_waits_for_one_answer_where_each_takes_longer_than_it():
    async def send(on_chunks: Any) -> Answer:
        await asyncio.sleep(0.15)
        return answer()

    load = Load(level=3, seconds=0.05, ramp_seconds=0.0, patience_seconds=5.0, max_error_share=0.01)
    found = asyncio.run(ClosedLoop(load, send).run())
    assert found.answers and found.seconds > 0.05


def test_a_level_at_which_nothing_is_served_is_over_when_every_client_has_failed_three_times():
    calls = []

    async def send(on_chunks: Any) -> Answer:
        calls.append(1)
        return answer(fault=BROKEN)

    load = Load(level=2, seconds=30.0, ramp_seconds=0.0, patience_seconds=5.0, max_error_share=0.01)
    found = asyncio.run(ClosedLoop(replace(load, seconds=0.01), send).run())
    assert found.cut_short and len(found.answers) == len(calls) >= 6


def test_a_search_finds_the_stated_capacity(monkeypatch):
    async def of_five(loop: ClosedLoop) -> Window:
        level = loop._load.level
        return window(*[answer(ttft=LATE if level > 5 else 0.01)] * 4, level=level, chunks=15 * level)

    monkeypatch.setattr(ClosedLoop, "run", of_five)
    slo = Slo(bounds=(Bound(latency="ttft", percentile=50, ms=1000 * LATE / 2),))
    with served(picky(set())) as site:
        found = swept(site, slo=slo, most=8)
    assert found.ended == "complete"
    assert {stage.asked: meets(stage, slo) for stage in found.stages} == {1: True, 2: True, 4: True, 5: True, 6: False, 8: False}
