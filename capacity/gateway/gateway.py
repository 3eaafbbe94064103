"""The gateway at work: a loop that asks for endpoints, one that pushes, and one a model in which requests arrive."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from capacity.gateway.command import GatewayOptions
from capacity.gateway.control import Api, Control
from capacity.gateway.routing import Router
from capacity.gateway.traffic import Traffic

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
LONGEST_POLL_SECONDS = 15.0
PUSH_SECONDS = 2.0
REPORT_SECONDS = 60.0
LAST_PUSH_SECONDS = 1.0


class Gateway:
    def __init__(self, control: Control, router: Router, traffic: Traffic, options: GatewayOptions) -> None:
        self.router = router
        self.traffic = traffic
        self._control = control
        self._options = options
        self._known = asyncio.Event()
        self._began_at = 0.0

    @classmethod
    @asynccontextmanager
    async def opened(cls, options: GatewayOptions) -> AsyncIterator[Gateway]:
        """A gateway with its connections, which are closed at the end of the block."""
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False) as session:
            router = Router()
            api = Api(url=options.api, token_file=options.token_file, pool=options.pool)
            traffic = Traffic(session, router, options.plan, options.seed)
            yield cls(Control(session, api), router, traffic, options)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop`; then say goodbye, so that nobody waits for this source."""
        loops = [self._poll(), self._push(), self._report(), *(self._arrivals(model) for model in self._options.plan.models)]
        tasks = [asyncio.create_task(loop) for loop in loops]
        stopping = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
        await _end([stopping, *tasks])
        await self.traffic.stop()
        await self._goodbye()
        for task in done - {stopping}:
            task.result()  # a loop ends by a defect alone: let it be seen

    async def _poll(self) -> None:
        pause = POLL_SECONDS
        while True:
            known = await self._control.endpoints()
            if known is None:
                pause = min(pause * 2, LONGEST_POLL_SECONDS)
            else:
                pause = POLL_SECONDS
                await self.router.update(known)
                self._begin()
            await asyncio.sleep(pause)

    async def _push(self) -> None:
        await self._known.wait()
        while True:
            await self._control.push(self.router.push_document(self._options.source, _now()))
            await asyncio.sleep(PUSH_SECONDS)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            logger.info("Requests so far: %s.", ", ".join(f"{number} {word}" for word, number in self.traffic.outcomes.items()))

    async def _arrivals(self, model: str) -> None:
        await self._known.wait()
        await self.traffic.arrivals(model, lambda: _now() - self._began_at)

    async def _goodbye(self) -> None:
        try:
            async with asyncio.timeout(LAST_PUSH_SECONDS):
                await self._control.push({"source": self._options.source, "replicas": {}, "models": {}})
        except TimeoutError:
            logger.info("The control plane was not told that this gateway stops.")

    def _begin(self) -> None:
        """The load begins when the control plane has answered for the first time."""
        if not self._known.is_set():
            self._began_at = _now()
            self._known.set()


async def _end(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _now() -> float:
    return asyncio.get_running_loop().time()
