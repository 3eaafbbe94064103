"""Sweeps of simulated engines, whose capacity is stated."""

from __future__ import annotations

import asyncio
import threading

import pytest
from aiohttp import web

from capacity.bench.asked import Asked, Progress
from capacity.bench.sweep import sweep
from capacity.domain.measurement.types import Bound, Slo
from capacity.simulator.server import EngineServer
from capacity.tests.bench_sites import SLO, Site, meets, picky, served, simulated, swept


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
