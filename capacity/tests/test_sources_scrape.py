"""Reading many engines at once: hostile ones cost their own reading and nobody else's."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from aiohttp import web

from capacity.ports import Sample
from capacity.sources import engines
from capacity.sources.engines import Limits, Skipped, Target, scrape

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
GOOD = "vllm:num_requests_running 3\nvllm:num_requests_waiting 1\nvllm:generation_tokens_total 77\n"
SAMPLE = Sample(in_flight=4, sampled_at=NOW, output_tokens_total=77, counters={"output_tokens": 77})
QUICK = Limits(seconds_each=0.3, seconds_in_all=2.0)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def good(request: web.Request) -> web.Response:
    return web.Response(text=GOOD)


async def hang(request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


async def html(request: web.Request) -> web.Response:
    return web.Response(text="<!doctype html><title>Sign in</title>", content_type="text/html")


async def nan(request: web.Request) -> web.Response:
    return web.Response(text=GOOD.replace(" 3", " NaN"))


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(200):
        await response.write(b"vllm:num_requests_running 3\n" * 40_000)  # 200 MB in all
    return response


async def drip(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"#")
        await asyncio.sleep(0.01)


async def bomb(request: web.Request) -> web.Response:
    body = gzip.compress(b"#" * 50_000_000, compresslevel=1)
    return web.Response(body=body, headers={"Content-Encoding": "gzip"})


def failing(status: int) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, text=GOOD)

    return answer


def saying(text: str) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=text)

    return answer


def redirect(location: str) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": location})

    return answer


@asynccontextmanager
async def engine(handler: Handler, **more: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/metrics", handler)
    for path, other in more.items():
        app.router.add_get(f"/{path}/", other)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def read(handler: Handler, limits: Limits = QUICK, **more: Handler) -> Sample | Skipped:
    async def go() -> Sample | Skipped:
        async with engine(handler, **more) as url:
            return (await scrape([Target(replica="r", url=url)], limits=limits, now=lambda: NOW))["r"]

    return asyncio.run(go())


def test_an_engine_s_answer_is_a_sample_with_its_time():
    assert read(good) == SAMPLE


def test_an_engine_that_answers_without_the_number_is_a_sample_of_unknown_load():
    assert read(nan) == replace(SAMPLE, in_flight=None)


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (hang, "No complete answer within 0.3 s."),
        (drip, "No complete answer within 0.3 s."),
        (html, "Answered HTML instead of metrics."),
        (endless, "Answered with more than 2097152 bytes."),
        (bomb, "Answered compressed, which was not asked for."),
        (failing(500), "Answered with status 500."),
        (failing(501), "Answered with status 501: llama.cpp has metrics only when it is started with --metrics."),
        (failing(400), "Answered with status 400: a llama.cpp router wants its URL to end with ?model=NAME."),
        (failing(401), "Answered with status 401: its metrics want a key, and llmgw sends none."),
        (failing(403), "Answered with status 403: its metrics are not for everybody."),
        (failing(404), "Answered with status 404: there are no metrics at that path."),
        (saying("[]"), "Answered JSON instead of metrics; TensorRT-LLM has them at /prometheus/metrics."),
        (saying('{"detail": "no"}'), "Answered JSON instead of metrics; TensorRT-LLM has them at /prometheus/metrics."),
        (saying("litellm_requests_metric_total 3\n"),
         "A LiteLLM proxy answers here: a gateway, which does not say how many requests are in flight."),
        (saying("# a GPU\nDCGM_FI_DEV_GPU_UTIL 3\n"), "No engine answers here, but NVIDIA's DCGM exporter."),
        (saying("up 1\n"), "Answered without a known engine's metrics."),
        (redirect("http://169.254.169.254/latest/meta-data/"), "Redirects to another host, which is not followed."),
        (redirect("//localhost/metrics"), "Redirects to another host, which is not followed."),
        (redirect("http://[::1"), "Its URL is not valid."),
        (redirect(""), "Redirects to another host, which is not followed."),
        (redirect("/metrics"), "Redirects twice."),
    ],
)  # fmt: skip
def test_a_hostile_engine_is_skipped_with_a_sentence(handler, reason):
    limits = QUICK if handler in (hang, drip) else Limits()
    assert read(handler, limits) == Skipped(reason)


def test_a_redirect_on_the_same_host_is_followed_once():
    assert read(redirect("/elsewhere/"), Limits(), elsewhere=good) == SAMPLE


def test_one_that_hangs_delays_nobody_else():
    async def go() -> dict[str, Sample | Skipped]:
        async with engine(good) as good_url, engine(hang) as hanging_url:
            targets = [Target(replica=f"good-{number}", url=good_url) for number in range(4)]
            return await scrape([Target(replica="hangs", url=hanging_url), *targets], limits=QUICK, now=lambda: NOW)

    results = asyncio.run(go())
    assert results.pop("hangs") == Skipped("No complete answer within 0.3 s.")
    assert list(results.values()) == [SAMPLE] * 4


def test_all_together_stay_within_their_time_and_those_not_reached_say_so():
    limits = Limits(connections=2, seconds_each=60, seconds_in_all=0.3)

    async def go() -> dict[str, Sample | Skipped]:
        async with engine(hang) as url:
            targets = [Target(replica=f"r{number}", url=url) for number in range(6)]
            return await scrape(targets, limits=limits)

    async def bounded() -> dict[str, Sample | Skipped]:
        async with asyncio.timeout(30):  # far below the minute that one reading may take
            return await go()

    assert set(asyncio.run(bounded()).values()) == {Skipped("Not read: all readings together may take 0.3 s.")}


def test_large_answers_wait_for_each_other_and_keep_nobody_else_up(monkeypatch):
    """The thread that reads large answers is kept busy for the whole round."""
    monkeypatch.setattr(engines, "LARGE_CHARACTERS", 1000)
    monkeypatch.setattr(engines, "MOST_LARGE", 2)
    end, line = threading.Event(), ThreadPoolExecutor(max_workers=1)
    monkeypatch.setattr(engines, "_LARGE", line)
    line.submit(end.wait)

    async def go() -> dict[str, Sample | Skipped]:
        async with engine(good) as url, engine(saying(GOOD + "up 1\n" * 1000)) as large_url:
            large = [Target(replica=f"large-{number}", url=large_url) for number in range(3)]
            small = [Target(replica=f"small-{number}", url=url) for number in range(3)]
            return await scrape([*large, *small], limits=Limits(seconds_in_all=1.0), now=lambda: NOW)

    found = asyncio.run(go())
    end.set()
    line.shutdown()
    assert [found[f"small-{number}"] for number in range(3)] == [SAMPLE] * 3
    waited = Skipped("Not read: all readings together may take 1 s.")
    refused = Skipped("Not read: 2 others answered with more than 1000 characters too.")
    assert sorted((found[f"large-{number}"] for number in range(3)), key=str) == [refused, waited, waited]


def test_a_large_answer_is_read_like_another():
    assert read(saying("up 1\n" * 120_000 + GOOD), Limits()) == SAMPLE


def test_no_more_connections_are_open_at_once_than_allowed():
    open_now, most = 0, 0

    async def counting(request: web.Request) -> web.Response:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.005)
        open_now -= 1
        return web.Response(text=GOOD)

    async def go() -> dict[str, Sample | Skipped]:
        async with engine(counting) as url:
            targets = [Target(replica=f"r{number}", url=url) for number in range(40)]
            return await scrape(targets, limits=Limits(connections=4), now=lambda: NOW)

    assert list(asyncio.run(go()).values()) == [SAMPLE] * 40
    assert 2 <= most <= 4


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://169.254.169.254", "The address 169.254.169.254 is refused: it is link-local."),
        ("http://[fe80::1]:80", "The address fe80::1 is refused: it is link-local."),
        ("http://[::ffff:169.254.169.254]/", "The address ::ffff:a9fe:a9fe is refused: it is link-local."),
        ("http://2852039166/", "Its URL is not valid."),
        ("http://0xa9fea9fe/", "The address 169.254.169.254 is refused: it is link-local."),
        ("http://0.0.0.0:80", "The address 0.0.0.0 is refused: it is no host's address."),
        ("http://0:80", "Its URL is not valid."),
        ("http://no-such-host.invalid", "Its host name does not resolve."),
        ("http://user:secret@[::1", "Its URL is not valid."),
        ("file:///etc/passwd", "Its URL is not valid."),
        ("", "Its URL is not valid."),
    ],
)
def test_a_url_that_must_not_be_read_is_skipped_with_a_sentence(url, reason):
    assert asyncio.run(scrape([Target(replica="r", url=url)])) == {"r": Skipped(reason)}


def test_an_engine_that_does_not_listen_is_skipped_without_its_secrets():
    async def go() -> Sample | Skipped:
        async with engine(good) as url:
            pass
        return (await scrape([Target(replica="r", url=url.replace("//", "//user:secret@"))]))["r"]

    result = asyncio.run(go())
    assert isinstance(result, Skipped)
    assert result.reason.startswith("Cannot be connected to (")
    assert "secret" not in result.reason


def test_a_name_is_judged_by_the_address_it_is_connected_at(monkeypatch):
    """A name that resolved to a good address when it was registered, and to the metadata service now."""
    monkeypatch.setattr("capacity.sources.address.socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("169.254.169.254", 80))])
    result = asyncio.run(scrape([Target(replica="r", url="http://engine.example")]))
    assert result == {"r": Skipped("The address 169.254.169.254 is refused: it is link-local.")}


def test_a_network_that_is_allowed_is_read():
    allowed = (ipaddress.ip_network("169.254.0.0/16"),)
    limits = Limits(seconds_each=0.2)
    result = asyncio.run(scrape([Target(replica="r", url="http://169.254.213.7:9")], limits=limits, allowed_networks=allowed))[
        "r"
    ]
    assert isinstance(result, Skipped)
    assert "refused: it is" not in result.reason


def test_proxies_of_the_environment_are_not_used(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert read(good, Limits()) == SAMPLE


def test_nothing_to_read_is_read_at_once_and_a_name_twice_is_read_once():
    assert asyncio.run(scrape([])) == {}

    async def go() -> dict[str, Sample | Skipped]:
        async with engine(good) as url:
            return await scrape([Target(replica="r", url="http://169.254.0.1"), Target(replica="r", url=url)], now=lambda: NOW)

    assert asyncio.run(go()) == {"r": SAMPLE}
