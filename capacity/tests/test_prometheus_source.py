"""Loads by way of a Prometheus server: each replica's own newest scrape, with its time; what is not there is unknown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from capacity.ports import Histogram, Sample
from capacity.sources.engines import Skipped, Target
from capacity.sources.prometheus import Server, ask, instance, query_text, readings
from capacity.sources.prometheus_api import Answer, Row

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
AT = NOW.timestamp() - 4
A, B = Target(replica="a", url="http://10.0.0.1:8000/v1"), Target(replica="b", url="http://10.0.0.2:8000")
RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"


def row(name: str, value: float, at: float = AT, host: str = "10.0.0.1:8000", **labels: str) -> Row:
    points = ((at - 30, value + 100), (at, value))
    return Row(labels={"__name__": name, "instance": host, "job": "engines", **labels}, points=points)


def engine(running: float = 3, waiting: float = 1, at: float = AT, **labels: str) -> list[Row]:
    return [row(RUNNING, running, at, **labels), row(WAITING, waiting, at, **labels), row("up", 1, at, **labels)]


def read(*rows: Row, targets: tuple[Target, ...] = (A,), warnings: tuple[str, ...] = ()) -> dict[str, Sample | Skipped]:
    return readings(Answer(rows=rows, warnings=warnings), targets, NOW)


def in_flight(*rows: Row) -> int | None:
    found = read(*rows)["a"]
    assert isinstance(found, Sample), found
    return found.in_flight


def test_a_replica_s_load_is_its_own_series_newest_values_with_their_time():
    tokens = row("vllm:generation_tokens_total", 77)
    other = engine(9, 9, host="10.0.0.2:8000")
    found = read(*engine(), tokens, *other, targets=(A, B))
    assert found["a"] == Sample(
        in_flight=4, sampled_at=NOW - timedelta(seconds=4), output_tokens_total=77, counters={"output_tokens": 77}
    )
    assert found["b"] == Sample(in_flight=18, sampled_at=NOW - timedelta(seconds=4))


def test_servers_that_keep_underscores_are_read_alike():
    assert in_flight(row("vllm_num_requests_running", 61), row("vllm_num_requests_waiting", 2)) == 63


def test_ranks_are_added_up_and_a_rank_of_an_earlier_scrape_is_not():
    ranks = [row(name, 5, engine=rank) for name in (RUNNING, WAITING) for rank in ("0", "1")]
    gone = [row(name, 50, AT - 15, engine="2") for name in (RUNNING, WAITING)]
    assert in_flight(*ranks, *gone) == 20


def test_a_target_that_is_no_longer_there_keeps_its_last_samples_and_they_age():
    old = NOW.timestamp() - 50
    assert read(*engine(at=old)) == {"a": Sample(in_flight=4, sampled_at=NOW - timedelta(seconds=50))}


def test_a_target_that_is_down_is_not_read_whatever_it_said_before():
    rows = [*engine(at=AT - 30)[:2], row("up", 0)]
    assert read(*rows) == {"a": Skipped("The Prometheus server cannot read 10.0.0.1:8000 (up is 0).")}
    assert read(row("up", 0)) == {"a": Skipped("The Prometheus server cannot read 10.0.0.1:8000 (up is 0).")}


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "The Prometheus server has no metrics of 10.0.0.1:8000 from the last minute."),
        ([row("up", 1)], "The Prometheus server reads 10.0.0.1:8000 and keeps no known engine's metrics of it."),
        ([*engine(), row("up", 1, pod="other")],
         "The Prometheus server has 2 targets by the name of 10.0.0.1:8000: which of them is meant is unknown."),
        (engine(at=NOW.timestamp() + 60), "The Prometheus server's clock is ahead: it read 10.0.0.1:8000 at 12:01:00 UTC."),
    ],
)  # fmt: skip
def test_what_it_cannot_say_of_a_replica_is_a_sentence(rows, sentence):
    assert read(*rows) == {"a": Skipped(sentence)}


def test_a_part_of_the_whole_says_what_it_warned_of():
    found = read(warnings=("a store is away",))["a"]
    assert found == Skipped(
        "The Prometheus server has no metrics of 10.0.0.1:8000 from the last minute. It warned: a store is away"
    )


def test_two_jobs_or_two_servers_of_a_pair_that_read_one_engine_count_once():
    assert in_flight(*engine(), *engine(5, 1, AT + 1, job="again")) == 6
    assert in_flight(*engine(prometheus_replica="one"), *engine(5, 1, AT - 2, prometheus_replica="two")) == 4


def test_a_job_that_fails_beside_one_that_works_hides_nothing():
    assert in_flight(*engine(), row("up", 0, AT + 1, job="again")) == 4


def test_replicas_behind_one_address_are_not_told_apart():
    both = (A, Target(replica="b", url="http://10.0.0.1:8000/other"))
    sentence = "Several replicas lie at 10.0.0.1:8000: Prometheus does not tell them apart."
    assert read(*engine(), targets=both) == {"a": Skipped(sentence), "b": Skipped(sentence)}


def test_histograms_are_read_like_an_engine_s_own():
    name = "vllm:time_to_first_token_seconds_bucket"
    buckets = [row(name, count, le=bound) for bound, count in (("0.5", 3), ("1", 4), ("+Inf", 5))]
    found = read(*engine(), *buckets)["a"]
    assert isinstance(found, Sample)
    assert found.latencies == {"ttft": Histogram(bounds=(0.5, 1.0), counts=(3, 4), count=5)}


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://Host.example:8000/v1", "host.example:8000"),
        ("http://host", "host:80"),
        ("https://host/metrics", "host:443"),
        ("http://[fd00::1]:8000", "[fd00::1]:8000"),
        ("http://host:99999", None),
        ("http://[::1", None),
        ("", None),
    ],
)
def test_an_instance_is_host_and_port_as_the_server_scrapes_it(url, name):
    assert instance(url) == name


def test_the_query_asks_for_samples_with_their_time_in_both_spellings_of_those_instances():
    text = query_text(["10.0.0.1:8000", "[fd00::1]:80"])
    assert text.endswith(r",instance=~`10\.0\.0\.1:8000|\[fd00::1\]:80`}[1m]")
    assert "|vllm[:_]num_requests_running|" in text
    assert "|ray[:_]vllm[:_]num_requests_running|" in text


# --- over the wire --------------------------------------------------------------------------------------------------

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def server(handler: Handler):
    app = web.Application()
    app.router.add_post("/prom/api/v1/query", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/prom/"
    finally:
        await runner.cleanup()


def asked(handler: Handler, targets: tuple[Target, ...] = (A,), **options: Any) -> dict[str, Sample | Skipped]:
    async def go() -> dict[str, Sample | Skipped]:
        async with server(handler) as url:
            return await ask(Server(url=url, **options), targets, now=lambda: NOW)

    return asyncio.run(go())


def body(*rows: Row) -> dict[str, Any]:
    result = [{"metric": dict(one.labels), "values": [[at, str(value)] for at, value in one.points]} for one in rows]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def test_the_server_is_asked_once_with_its_token():
    seen = []

    async def answers(request: web.Request) -> web.Response:
        seen.append((request.headers.get("Authorization"), (await request.post())["query"]))
        return web.json_response(body(*engine()))

    found = asked(answers, (A, B), token="secret")
    assert found["a"] == Sample(in_flight=4, sampled_at=NOW - timedelta(seconds=4))
    assert isinstance(found["b"], Skipped)
    assert seen == [("Bearer secret", query_text(["10.0.0.1:8000", "10.0.0.2:8000"]))]


async def hang(request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


async def echo(request: web.Request) -> web.Response:
    message = {"status": "error", "errorType": "denied", "error": f"no entry with {request.headers.get('Authorization')}"}
    return web.json_response(message, status=403)


async def login(request: web.Request) -> web.Response:
    return web.Response(status=302, headers={"Location": "http://elsewhere/?Authorization"})


async def page(request: web.Request) -> web.Response:
    return web.Response(status=502, text="<html>")


async def huge(request: web.Request) -> web.Response:
    return web.Response(text="[" * 5000, content_type="application/json")


@pytest.mark.parametrize(
    ("handler", "sentence"),
    [
        (hang, "The Prometheus server gave no complete answer within 0.3 s."),
        (echo, "The Prometheus server refused the query (denied: no entry with Bearer …)."),
        (login, "The Prometheus server answered with status 302."),
        (page, "The Prometheus server answered with status 502."),
        (huge, "The Prometheus server answered with more than 1000 bytes."),
    ],
)
def test_a_server_that_does_not_answer_leaves_all_unread_with_a_sentence_without_the_token(handler, sentence):
    seconds = 0.3 if handler is hang else 5.0
    assert asked(handler, (A, B), token="secret", seconds=seconds, answer_bytes=1000) == dict.fromkeys("ab", Skipped(sentence))


def test_a_server_that_is_away_leaves_all_unread():
    found = asyncio.run(ask(Server(url="http://127.0.0.1:9", token="secret"), [A]))
    assert found == {"a": Skipped("The Prometheus server cannot be asked (ClientConnectorError).")}
    assert "secret" not in repr(Server(url="http://h", token="secret"))


def test_nobody_is_asked_for_nothing():
    assert asyncio.run(ask(Server(url="http://127.0.0.1:9"), [])) == {}
    assert asyncio.run(ask(Server(url="http://127.0.0.1:9"), [Target(replica="a", url="x")])) == {
        "a": Skipped("Its URL is not valid.")
    }
