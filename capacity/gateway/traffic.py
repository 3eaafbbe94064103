"""Requests: when they arrive, and what becomes of each."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable

import aiohttp

from capacity.gateway.load_plan import LoadPlan, ModelLoad
from capacity.gateway.routing import Endpoint, Router

logger = logging.getLogger(__name__)

MAX_REQUESTS = 1_000  # at once, over all models: more are dropped, so that a stalled fleet cannot fill the memory
LOOK_AGAIN_SECONDS = 0.5  # the rate changes with time: a longer gap is drawn anew, which changes nothing for random arrivals
REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=600, sock_connect=3, sock_read=60)
DONE = b"data: [DONE]"


class StreamFailed(Exception):
    """A stream that did not reach its end."""


class Traffic:
    """Sends a plan's load. `outcomes` counts requests as done, retried, failed, unplaced and dropped."""

    def __init__(self, session: aiohttp.ClientSession, router: Router, plan: LoadPlan, seed: int) -> None:
        self.outcomes: Counter[str] = Counter()
        self._session = session
        self._router = router
        self._plan = plan
        self._random = random.Random(seed)  # noqa: S311 - a made-up load
        self._requests: set[asyncio.Task[None]] = set()

    async def arrivals(self, model: str, clock: Callable[[], float]) -> None:
        """Let requests arrive at random at the plan's rate, whatever becomes of others. `clock`: seconds since the start."""
        while True:
            gap = self._gap(self._plan.per_second(model, clock()))
            await asyncio.sleep(min(gap, LOOK_AGAIN_SECONDS))
            if gap <= LOOK_AGAIN_SECONDS and model in self._router.known.names:
                self.arrive(model)

    def arrive(self, served_name: str) -> None:
        """One request by a name that the control plane knows."""
        model = self._router.known.names[served_name]
        self._router.arrived(model, asyncio.get_running_loop().time())
        if len(self._requests) >= MAX_REQUESTS:
            self.outcomes["dropped"] += 1
            return
        task = asyncio.create_task(self._serve(model, self._plan.models[served_name]))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def stop(self) -> None:
        tasks = [*self._requests]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, model: str, load: ModelLoad) -> None:
        outcome = await self._try(model, load, tried=())
        self.outcomes[outcome] += 1

    async def _try(self, model: str, load: ModelLoad, tried: tuple[str, ...]) -> str:
        """Send, and where the engine fails send once more elsewhere; the outcome in a word."""
        endpoint = await self._router.find(model, tried)
        if endpoint is None:
            return "unplaced"
        try:
            with self._router.sending(endpoint):
                await self._stream(endpoint, load)
        except (aiohttp.ClientError, OSError, StreamFailed, ValueError) as failed:
            logger.info("A request failed on %s (%s).", endpoint.replica, type(failed).__name__)
            if tried:
                return "failed"
            self.outcomes["retried"] += 1
            return await self._try(model, load, (endpoint.replica,))
        return "done"

    async def _stream(self, endpoint: Endpoint, load: ModelLoad) -> None:
        document = {
            "model": endpoint.model,
            "messages": [{"role": "user", "content": "word " * load.prompt_words}],
            "max_tokens": load.output_tokens,
            "stream": True,
        }
        url = f"{endpoint.url}/v1/chat/completions"
        async with self._session.post(url, json=document, timeout=REQUEST_TIMEOUT, allow_redirects=False) as response:
            if response.status != 200:
                raise StreamFailed(f"status {response.status}")
            await _read_to_end(response)

    def _gap(self, per_second: float) -> float:
        return self._random.expovariate(per_second) if per_second > 0 else float("inf")


async def _read_to_end(response: aiohttp.ClientResponse) -> None:
    """Read a stream and forget it; StreamFailed where it ends without its last event."""
    tail = b""
    async for chunk in response.content.iter_any():
        tail = (tail + chunk)[-2 * len(DONE) :]
    if DONE not in tail:
        raise StreamFailed("ended early")
