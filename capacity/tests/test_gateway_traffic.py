"""The gateway against real servers in the test's own process: a control plane and engines, good and bad."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from django.core.management import call_command

from capacity.gateway.command import GatewayOptions, main
from capacity.gateway.control import Api, Control
from capacity.gateway.gateway import Gateway
from capacity.gateway.load_plan import LoadPlan, ModelLoad
from capacity.gateway.routing import Endpoint, Endpoints, Router
from capacity.gateway.traffic import Traffic
from capacity.simulator.options import EngineOptions
from capacity.simulator.server import EngineServer

PLAN = LoadPlan(cycle_seconds=60, models={"m": ModelLoad(low_per_second=200, high_per_second=200, output_tokens=3)})
TOKEN = "correct-horse"


@asynccontextmanager
async def served(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def engine_app() -> web.Application:
    return EngineServer(EngineOptions(model="m", ttft_seconds=0.0, tpot_seconds=0.0002)).application()


def broken_app(body: bytes, status: int = 200) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=body, status=status)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    return app


def known(**urls: str) -> Endpoints:
    rows = [Endpoint(replica=name, model="m", url=url, weight=8) for name, url in urls.items()]
    return Endpoints(endpoints=tuple(rows), names={"m": "m", "alias": "m"})


async def until(true: Callable[[], bool]) -> None:
    """Look until it is so; the deadline is only for a program that never gets there."""
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.005)


async def send(endpoints: Endpoints, requests: int = 1) -> tuple[Counter[str], Router]:
    """Let requests arrive, and wait until all have come to an end."""
    async with aiohttp.ClientSession() as session:
        router = Router()
        traffic = Traffic(session, router, PLAN, seed=1)
        await router.update(endpoints)
        for _ in range(requests):
            traffic.arrive("m")
        ends = ("done", "failed", "unplaced", "dropped")
        await until(lambda: sum(traffic.outcomes[word] for word in ends) == requests)
        return traffic.outcomes, router


def test_a_request_is_streamed_to_its_end():
    async def go() -> tuple[Counter[str], Router]:
        async with served(engine_app()) as url:
            return await send(known(a=url), requests=20)

    outcomes, router = asyncio.run(go())
    assert outcomes == {"done": 20}
    assert router.in_flight["a"] == 0
    assert "m" in router.last_arrival


@pytest.mark.parametrize(("body", "status"), [(b"data: {}\n\n", 200), (b"", 200), (b"<html>", 503), (b"", 307)])
def test_a_request_that_fails_on_one_engine_is_sent_once_more_to_another(body, status):
    async def go() -> tuple[Counter[str], Router]:
        async with served(broken_app(body, status)) as broken, served(engine_app()) as good:
            return await send(known(a=broken, b=good))

    outcomes, _ = asyncio.run(go())
    assert outcomes == {"retried": 1, "done": 1}


def test_a_request_that_fails_twice_has_failed():
    async def go() -> tuple[Counter[str], Router]:
        async with served(broken_app(b"")) as one, served(broken_app(b"")) as other:
            return await send(known(a=one, b=other, c="http://127.0.0.1:9"))

    assert asyncio.run(go())[0] == {"retried": 1, "failed": 1}


def test_an_engine_that_is_gone_costs_a_retry_and_no_request():
    async def go() -> tuple[Counter[str], Router]:
        async with served(engine_app()) as gone:
            pass
        async with served(engine_app()) as good:
            return await send(known(a=gone, b=good))

    assert asyncio.run(go())[0] == {"retried": 1, "done": 1}


def test_a_request_by_an_alias_counts_for_its_model():
    async def go() -> dict[str, float]:
        async with served(engine_app()) as url, aiohttp.ClientSession() as session:
            router = Router()
            plan = LoadPlan(cycle_seconds=60, models={"alias": PLAN.models["m"]})
            traffic = Traffic(session, router, plan, seed=1)
            await router.update(known(a=url))
            traffic.arrive("alias")
            await until(lambda: traffic.outcomes["done"] == 1)
            return router.last_arrival

    assert set(asyncio.run(go())) == {"m"}


def test_more_requests_than_the_bound_are_dropped(monkeypatch):
    monkeypatch.setattr("capacity.gateway.traffic.MAX_REQUESTS", 3)

    async def go() -> Counter[str]:
        async with aiohttp.ClientSession() as session:
            router = Router()
            traffic = Traffic(session, router, PLAN, seed=1)
            await router.update(known())
            for _ in range(5):
                traffic.arrive("m")
            await traffic.stop()
            return traffic.outcomes

    assert asyncio.run(go()) == {"dropped": 2}


class ControlPlane:
    """The two calls that a gateway makes."""

    def __init__(self, endpoints: list[dict[str, Any]]) -> None:
        self.endpoints = endpoints
        self.pushes: list[dict[str, Any]] = []
        self.status = 200
        self.asked = 0

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/api/v1/endpoints", self._endpoints)
        app.router.add_post("/api/v1/load", self._load)
        return app

    async def _endpoints(self, request: web.Request) -> web.Response:
        self.asked += 1
        self._check(request)
        models = [{"name": "m", "served_names": []}]
        return web.json_response({"endpoints": self.endpoints, "models": models}, status=self.status)

    async def _load(self, request: web.Request) -> web.Response:
        self._check(request)
        self.pushes.append(await request.json())
        return web.json_response({})

    def _check(self, request: web.Request) -> None:
        assert request.query["pool"] == "example"
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name in ("POLL_SECONDS", "PUSH_SECONDS"):
        monkeypatch.setattr(f"capacity.gateway.gateway.{name}", 0.01)
    monkeypatch.setattr("capacity.gateway.gateway.LONGEST_POLL_SECONDS", 0.02)


@asynccontextmanager
async def running(url: str, token_file: Path) -> AsyncIterator[Gateway]:
    options = GatewayOptions(api=url, token_file=token_file, pool="example", plan=PLAN, source="g", seed=1)
    stop = asyncio.Event()
    async with Gateway.opened(options) as gateway:
        task = asyncio.create_task(gateway.run(stop))
        try:
            yield gateway
        finally:
            stop.set()
            await task


def test_a_gateway_asks_sends_pushes_and_says_goodbye(token_file):
    async def go() -> list[dict[str, Any]]:
        async with served(engine_app()) as url:
            control = ControlPlane([{"replica": "r", "model": "m", "url": url, "weight": 8}])
            async with served(control.application()) as api, running(api, token_file) as gateway:
                await until(lambda: gateway.traffic.outcomes["done"] >= 5 and len(control.pushes) >= 2)
            return control.pushes

    first, *_, last = asyncio.run(go())
    assert (first["source"], set(first["replicas"]), set(first["models"])) == ("g", {"r"}, {"m"})
    assert last == {"source": "g", "replicas": {}, "models": {}}


def test_requests_that_find_no_replica_are_pushed_as_held_and_go_when_one_comes(token_file):
    async def go() -> int:
        control = ControlPlane([])
        async with served(engine_app()) as url, served(control.application()) as api, running(api, token_file) as gateway:
            await until(lambda: any(push["models"].get("m", {}).get("held", 0) >= 3 for push in control.pushes))
            control.endpoints = [{"replica": "r", "model": "m", "url": url, "weight": 8}]
            await until(lambda: gateway.traffic.outcomes["done"] >= 3)
            return gateway.router.held["m"]

    assert asyncio.run(go()) == 0


def test_while_the_control_plane_is_away_the_gateway_goes_on_by_what_it_said_last(token_file):
    async def go() -> None:
        async with served(engine_app()) as url:
            control = ControlPlane([{"replica": "r", "model": "m", "url": url, "weight": 8}])
            async with served(control.application()) as api, running(api, token_file) as gateway:
                await until(lambda: gateway.traffic.outcomes["done"] >= 1)
                control.status = 500
                asked, before = control.asked, gateway.traffic.outcomes["done"]
                await until(lambda: control.asked >= asked + 3 and gateway.traffic.outcomes["done"] >= before + 5)
                assert [found.replica for found in gateway.router.known.endpoints] == ["r"]

    asyncio.run(go())


def test_no_load_is_made_for_a_model_that_the_control_plane_does_not_have():
    async def go() -> Counter[str]:
        async with aiohttp.ClientSession() as session:
            router = Router()
            traffic = Traffic(session, router, PLAN, seed=1)
            await router.update(Endpoints(names={"other": "other"}))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):  # some twenty requests' time
                    await traffic.arrivals("m", lambda: 0.0)
            return router.held

    assert asyncio.run(go()) == {}


def test_trouble_is_told_once_for_each_call_however_often_it_comes(token_file, monkeypatch):
    told: list[str] = []
    for level in ("warning", "info"):
        monkeypatch.setattr(f"capacity.gateway.control.logger.{level}", lambda text, *values: told.append(text % values))

    async def go() -> None:
        plane = ControlPlane([])
        async with served(plane.application()) as url, aiohttp.ClientSession() as session:
            control = Control(session, Api(url=url, token_file=token_file, pool="example"))
            for plane.status in (200, 500, 500, 500, 200):
                await control.endpoints()
                assert await control.push({"source": "g"})

    asyncio.run(go())
    assert [line.partition(" (")[0] for line in told] == [
        "The control plane fails at /api/v1/endpoints",
        "The control plane answers /api/v1/endpoints again.",
    ]


def call(api: str, token_file: Path) -> object:
    async def go() -> object:
        async with aiohttp.ClientSession() as session:
            return await Control(session, Api(url=api, token_file=token_file, pool="example")).endpoints()

    return asyncio.run(go())


def test_trouble_with_the_control_plane_is_no_endpoints_and_no_secret_in_the_log(token_file, tmp_path, monkeypatch):
    told: list[str] = []
    monkeypatch.setattr("capacity.gateway.control.logger.warning", lambda text, *values: told.append(text % values))

    async def go(body: bytes) -> object:
        async def answer(request: web.Request) -> web.Response:
            return web.Response(body=body)

        app = web.Application()
        app.router.add_get("/api/v1/endpoints", answer)
        async with served(app) as url:
            return await asyncio.to_thread(call, url, token_file)

    for body in (b"<html>", b"\xff", b"[" * 100_000, b"{}", b"x" * 9_000_000):
        assert asyncio.run(go(body)) is None
    assert call("http://127.0.0.1:9", token_file) is None
    assert call("http://127.0.0.1:9", tmp_path / "missing") is None
    token_file.write_text("bad\ntoken")
    assert call("http://127.0.0.1:9", token_file) is None
    assert len(told) == 8
    assert all(line.startswith("The control plane fails at /api/v1/endpoints (") and TOKEN not in line for line in told)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "The following arguments are required: --api, --token-file."),
        (["--api", "host", "--token-file", "f"], "--api must be a URL such as http://127.0.0.1:8000"),
        (["--api", "http://u:secret@h", "--token-file", "f"], "--api must be a URL such as http://127.0.0.1:8000"),
        (["--api", "http://h:99999", "--token-file", "f"], "--api must be a URL such as http://127.0.0.1:8000"),
        (
            ["--api", "http://h", "--token-file", "f", "--shape", "/no/such"],
            "The load plan /no/such cannot be read: No such file",
        ),
    ],
)
def test_a_bad_option_is_one_sentence_and_exit_status_2(options, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(options)
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.startswith(words)
    assert told.count("\n") == 1
    assert "secret" not in told


def test_the_command_refuses_a_plan_with_its_place(tmp_path, capsys):
    plan = tmp_path / "plan.json"
    plan.write_text('{"models": {}}')
    with pytest.raises(SystemExit):
        call_command("gateway", "--api", "http://h", "--token-file", "f", "--shape", str(plan))
    assert capsys.readouterr().err == f"{plan}: $.models must name at least one model.\n"
