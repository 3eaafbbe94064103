"""Sweeps of simulated engines, whose capacity is stated."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from capacity.bench import summary
from capacity.bench.asked import Asked, Progress, Swept
from capacity.bench.closed_loop import ClosedLoop, Load, Window
from capacity.bench.facts import Counters, between
from capacity.bench.requests import FORMS, Prompts, body
from capacity.bench.stream import Answer, Fault
from capacity.bench.sweep import sweep
from capacity.domain.measurement.types import Bound, Slo, Stage
from capacity.domain.measurement.verdict import verdict
from capacity.simulator.options import EngineOptions
from capacity.simulator.server import EngineServer
from capacity.sources.reading import EngineReading

TTFT, TPOT = 0.06, 0.008
LATE = 1.0
SLO = Slo(
    bounds=(
        Bound(latency="ttft", percentile=50, ms=1000 * TTFT),
        Bound(latency="tpot", percentile=50, ms=1000 * TPOT),
    )
)
BROKEN = Fault(kind="status", why="It answered with status 503.", status=503)


def meets(stage: Stage, slo: Slo) -> bool:
    return verdict(stage, slo).outcome == "meets"


class Site:
    """An application served from a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.url = ""
        self.engine: EngineServer | None = None
        self.runners: list[web.AppRunner] = []

    async def start(self, app: web.Application) -> web.AppRunner:
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self.runners.append(runner)
        return runner

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(10)


@contextmanager
def served(make: Any) -> Iterator[Site]:
    site = Site()
    thread = threading.Thread(target=site.loop.run_forever)
    thread.start()

    async def begin() -> web.AppRunner:
        return await site.start(make(site))

    runner = site.run(begin())
    try:
        yield site
    finally:
        site.run(runner.cleanup())
        site.loop.call_soon_threadsafe(site.loop.stop)
        thread.join()
        site.loop.close()


@contextmanager
def simulated(**options: Any) -> Iterator[Site]:
    def make(site: Site) -> web.Application:
        site.engine = EngineServer(EngineOptions(**{"model": "m", "ttft_seconds": TTFT, "tpot_seconds": TPOT, **options}))
        return site.engine.application()

    with served(make) as site:
        yield site


def swept(site: Site | str, **asked: Any) -> Swept:
    url = site if isinstance(site, str) else site.url
    question = Asked(
        **{"endpoint": url, "model": "m", "slo": SLO, "seconds": 0.5, "output_tokens": 24, "input_tokens": 64, **asked}
    )
    return sweep(question, progress=lambda progress: None, should_stop=lambda: False)


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


def test_a_sweep_says_what_the_engine_is_and_leaves_nothing_behind():
    with simulated(capacity=4) as site:
        found = swept(site, levels=(4,))
        assert site.engine.engine.running + site.engine.engine.waiting == 0, "nothing is left behind"
    assert (found.setting.output_tokens, found.setting.engine) == (24, "llmgw-simulator")
    assert abs(found.setting.input_tokens - 64) <= 9, "prompts have the length asked for"
    assert found.evidence["output_pinned"] and found.evidence["tokens_from"] == "usage" and found.evidence["simulated"]
    assert found.setting.hints["engine owned_by"] == "llmgw-simulator" and found.evidence["cache_hit_rate"] is None
    (top,) = found.stages
    assert 2 < top.mean_in_flight <= 4 and top.errors == 0
    assert found.evidence["levels"]["4"]["engine_output_tokens_per_second"] > 0


def test_an_endpoint_that_calls_the_model_otherwise_says_what_it_offers_and_is_swept_by_that_name():
    def make(site: Site) -> web.Application:
        async def chat(request: web.Request) -> web.Response:
            name = (await request.json())["model"]
            if name != "served/m":
                return web.json_response({"error": {"message": f"The model `{name}` does not exist."}}, status=404)
            return web.json_response({"object": "whole"})

        async def models(request: web.Request) -> web.Response:
            return web.json_response({"data": [{"id": "served/m"}, {"id": 3}, "x"]})

        app = web.Application()
        app.router.add_post("/v1/chat/completions", chat)
        app.router.add_get("/v1/models", models)
        return app

    with served(make) as site:
        refused, heard = swept(site), swept(site, served_name="served/m")
    assert "`m` does not exist. It offers “served/m”: say what it calls the model" in refused.why
    assert "instead of a stream" in heard.why and heard.setting.model == "m"
    assert heard.setting.hints["served name"] == "served/m"


@pytest.mark.parametrize("api", ["embeddings", "rerank"])
def test_embeddings_and_rankings_are_judged_end_to_end_and_their_tokens_are_input(api):
    slo = Slo(bounds=(Bound(latency="e2e", percentile=50, ms=60_000),))
    with simulated(capacity=2) as site:
        found = swept(site, api=api, slo=slo, levels=(2,), seconds=0.3)
    (stage,) = found.stages
    assert stage.flags - {"weak"} == {"input_tokens", "simulated"} and stage.tokens_per_second > 0
    assert not stage.ttft_ms and not stage.tpot_ms and meets(stage, slo)
    assert found.setting.output_tokens is None and found.setting.variant == api
    assert abs(found.setting.input_tokens - 64) <= 16


def test_a_sweep_that_is_told_to_stop_ends_in_the_middle_of_a_level_and_leaves_nothing_behind():
    said: list[Progress] = []
    with simulated(capacity=8) as site:
        question = Asked(endpoint=site.url, model="m", slo=SLO, levels=(1, 4), seconds=60, output_tokens=24, input_tokens=8)
        found = sweep(question, progress=said.append, should_stop=lambda: said[-1].doing == "measuring")
        site.run(_until_idle(site.engine))
    assert found.ended == "stopped" and found.stages == () and found.why == "It was stopped after 0 levels."
    assert {progress.level for progress in said if progress.doing == "measuring"} == {1}
    assert all(0 < progress.seconds_left <= 2 * 62 and progress.levels_left == 2 for progress in said if progress.level)
    assert said[-1].doing == "over" and said[-1].seconds_left == 0


async def _until_idle(engine: EngineServer) -> None:
    while engine.engine.running + engine.engine.waiting:
        await asyncio.sleep(0.01)


def test_what_the_caller_raises_ends_the_sweep_and_is_raised():
    def fail(progress: Progress) -> None:
        raise RuntimeError("the database is gone")

    with simulated() as site, pytest.raises(RuntimeError, match="the database is gone"):
        sweep(Asked(endpoint=site.url, model="m", slo=SLO), progress=fail, should_stop=lambda: False)
    assert not [thread for thread in threading.enumerate() if thread.name == "sweep"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"endpoint": "http://127.0.0.1:1"}, "Cannot be connected to"),
        ({"endpoint": "http://169.254.169.254"}, "is refused"),
        ({"endpoint": "ftp://x"}, "starts with http"),
        ({"endpoint": "http://127.0.0.1:1", "api": "rerank"}, "bound its end-to-end time"),
        ({"endpoint": "http://127.0.0.1:1", "output_tokens": 1}, "at least two output tokens"),
        ({"endpoint": "http://127.0.0.1:1", "seconds": 0}, "seconds must be above 0"),
    ],
)
def test_what_cannot_be_swept_is_one_sentence(asked, words):
    found = swept(asked.pop("endpoint"), **asked)
    assert found.ended == "failed" and words in found.why and found.stages == ()


def test_a_wrong_model_is_told_in_the_endpoint_s_own_words():
    with simulated() as site:
        said = "It answered with status 404: The model `other` does not exist. It offers “m”: "
        assert swept(site, model="other").why.startswith(said)


def picky(refused: set[str], fails_above: int = 10**6):
    """A server that refuses some fields and more requests at once than so many; it answers a token a millisecond."""

    def make(site: Site) -> web.Application:
        running = 0

        async def handler(request: web.Request) -> web.StreamResponse:
            nonlocal running
            document = await request.json()
            if unknown := refused & document.keys():
                return web.json_response({"error": {"message": f"Unknown {sorted(unknown)}"}}, status=400)
            if running >= fails_above:
                return web.json_response({"error": {"message": "busy"}}, status=503)
            running += 1
            try:
                response = web.StreamResponse()
                await response.prepare(request)
                for _ in range(4):
                    await asyncio.sleep(0.01)
                    await response.write(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n')
                await response.write(b"data: [DONE]\n\n")
            finally:
                running -= 1
            return response

        app = web.Application()
        app.router.add_post("/v1/chat/completions", handler)
        return app

    return make


@pytest.mark.parametrize("refused", [{"ignore_eos", "min_tokens", "stream_options"}, set()])
def test_a_server_that_refuses_or_ignores_the_extras_has_its_chunks_counted_and_its_true_length_told(refused):
    with served(picky(refused)) as site:
        found = swept(site, levels=(2,), seconds=0.3)
    (stage,) = found.stages
    assert stage.errors == 0 and "estimated" in stage.flags
    assert (found.setting.output_tokens, found.setting.input_tokens) == (4, None), "the true length, not the one asked for"
    assert not found.evidence["output_pinned"] and found.setting.drawn and found.evidence["tokens_from"] == "chunks"


def test_a_level_with_too_many_errors_ends_early_with_the_truth_and_the_search_goes_below_it():
    slo = Slo(bounds=(Bound(latency="ttft", percentile=50, ms=1000),))
    with served(picky(set(), fails_above=2)) as site:
        found = swept(site, slo=slo, most=4, seconds=0.3)
    by_level = {stage.asked: stage for stage in found.stages}
    assert [*by_level] == [1, 2, 3, 4]
    assert [meets(stage, slo) for stage in found.stages] == [True, True, False, False]
    assert by_level[4].errors > 0
    assert found.evidence["levels"]["4"]["error_kinds"] == {"status": by_level[4].errors}
    assert found.evidence["levels"]["4"]["first_error"] == "It answered with status 503: busy"


def test_an_endpoint_that_goes_away_ends_the_sweep_and_the_levels_before_stand():
    with simulated(capacity=4) as site:
        gone = threading.Event()

        def watch(progress: Progress) -> None:
            if len(progress.stages) == 1 and not gone.is_set():
                gone.set()
                site.run(_go_away(site))

        question = Asked(endpoint=site.url, model="m", slo=SLO, levels=(1, 2), seconds=0.4, output_tokens=8, input_tokens=8)
        found = sweep(question, progress=watch, should_stop=lambda: False)
    assert found.ended == "failed"
    assert found.why.startswith("It stopped answering at level 2: ")
    assert [stage.asked for stage in found.stages] == [1]


async def _go_away(site: Site) -> None:
    for runner in site.runners:
        await runner.cleanup()


# --- parts --------------------------------------------------------------------------------------------------------------


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
