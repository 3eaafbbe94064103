"""Endpoints that sweeps are tried on: the simulator in a thread, and servers of odd manners."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from capacity.bench.asked import Asked, Swept
from capacity.bench.stream import Fault
from capacity.bench.sweep import sweep
from capacity.domain.measurement.types import Bound, Slo, Stage
from capacity.domain.measurement.verdict import verdict
from capacity.simulator.options import EngineOptions
from capacity.simulator.server import EngineServer

LATE = 1.0


TTFT, TPOT = 0.06, 0.008
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
