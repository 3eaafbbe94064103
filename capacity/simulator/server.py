"""The HTTP side of the simulator: one timer moves the engine on about ten times a second, and each stream writes what is new."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from aiohttp import web

from capacity.simulator.completion import (
    MAX_BODY_BYTES,
    AnswerText,
    BadRequest,
    InputRequest,
    embeddings,
    ranking,
    read_embeddings,
    read_request,
    read_rerank,
)
from capacity.simulator.engine import Engine, Stream
from capacity.simulator.options import EngineOptions

TICK_SECONDS = 0.1
MAX_WAITING = 4096
FINISH_SECONDS = 1.2  # after SIGTERM running streams may end by themselves for so long; all is over within two seconds
CUT_SECONDS = 0.4
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class EngineServer:
    """An engine behind `application()`. To be made and used inside one running event loop."""

    def __init__(self, options: EngineOptions) -> None:
        self.options = options
        self.engine = Engine(options, self._now())
        self._timer: asyncio.TimerHandle | None = None
        self._numbers = count(1)
        self._stopping = False
        self._probe_is_broken = False

    def break_probe(self, broken: bool = True) -> None:
        """The health page says that the engine is not well (or no longer says so), while it serves on."""
        self._probe_is_broken = broken

    def application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_openai_errors])
        app.router.add_get("/health", self._health)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._complete_chat)
        app.router.add_post("/v1/completions", self._complete_text)
        app.router.add_post("/v1/embeddings", self._embed)
        app.router.add_post("/v1/rerank", self._rank)
        return app

    async def stop(self) -> None:
        """Let streams end for a moment, then cut the rest; new requests are refused from now on."""
        self._stopping = True
        deadline = self._now() + FINISH_SECONDS
        while self._busy() and self._now() < deadline:
            await asyncio.sleep(TICK_SECONDS / 2)
        self.engine.cut_all(self._now())

    async def _health(self, request: web.Request) -> web.Response:
        self._refuse_unless_ready()
        if self._probe_is_broken:
            raise BadRequest("The health page is broken on purpose.", status=503)
        return web.Response()

    async def _metrics(self, request: web.Request) -> web.Response:
        engine = self.engine
        engine.advance(self._now())
        text = engine.metrics.render(running=engine.running, waiting=engine.waiting, kv_cache_usage=engine.kv_cache_usage())
        return web.Response(body=text.encode(), headers={"Content-Type": METRICS_TYPE})

    async def _models(self, request: web.Request) -> web.Response:
        self._refuse_unless_ready()
        row = {"id": self.options.model, "object": "model", "created": int(time.time()), "owned_by": "llmgw-simulator"}
        return web.json_response({"object": "list", "data": [row]})

    async def _complete_chat(self, request: web.Request) -> web.StreamResponse:
        return await self._complete(request, chat=True)

    async def _complete_text(self, request: web.Request) -> web.StreamResponse:
        return await self._complete(request, chat=False)

    async def _embed(self, request: web.Request) -> web.StreamResponse:
        self._refuse_unless_ready()
        asked = read_embeddings(await _body(request), model=self.options.model)
        return await self._once(asked, embeddings(asked, self.options.model))

    async def _rank(self, request: web.Request) -> web.StreamResponse:
        self._refuse_unless_ready()
        asked = read_rerank(await _body(request), model=self.options.model)
        return await self._once(asked, ranking(asked, self.options.model))

    async def _once(self, asked: InputRequest, document: dict[str, Any]) -> web.Response:
        """It takes what a first token takes."""
        news = asyncio.Event()
        stream = self._submit(asked.prompt_tokens, 1, news.set)
        try:
            return await _write_whole(stream, news, lambda: document)
        finally:
            self.engine.cut(self._now(), stream)
            self._arm()

    async def _complete(self, request: web.Request, *, chat: bool) -> web.StreamResponse:
        self._refuse_unless_ready()
        asked = read_request(await _body(request), chat=chat, model=self.options.model)
        answer = AnswerText(asked, identifier=f"cmpl-{next(self._numbers)}", model=self.options.model, created=int(time.time()))
        news = asyncio.Event()
        stream = self._submit(asked.prompt_tokens, asked.output_tokens, news.set)
        try:
            if asked.stream:
                return await _write_stream(request, stream, news, answer)
            return await _write_whole(stream, news, answer.whole)
        finally:
            # A client that went away cancels this handler: its request must not count as in flight any longer.
            self.engine.cut(self._now(), stream)
            self._arm()

    def _refuse_unless_ready(self) -> None:
        if self._stopping:
            raise BadRequest("The engine is stopping.", status=503)
        if self.engine.loading(self._now()):
            raise BadRequest("The model is loading.", status=503)

    def _submit(self, prompt_tokens: int, output_tokens: int, wake: Callable[[], None]) -> Stream:
        if self.engine.waiting >= MAX_WAITING:
            raise BadRequest("The queue is full.", status=503)
        stream = self.engine.submit(self._now(), prompt_tokens=prompt_tokens, output_tokens=output_tokens, wake=wake)
        self._arm()
        return stream

    def _arm(self) -> None:
        """Set the one timer: at the next tick, or before it where a first or last token is due."""
        if self._timer is not None:
            self._timer.cancel()
        event_at = self.engine.next_event_at()
        loop = asyncio.get_running_loop()
        self._timer = None if event_at is None else loop.call_at(min(event_at, self._now() + TICK_SECONDS), self._step)

    def _step(self) -> None:
        self.engine.advance(self._now())
        self._arm()

    def _busy(self) -> bool:
        return self.engine.running + self.engine.waiting > 0

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


async def serve(options: EngineOptions, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. SIGUSR1 breaks the health page alone, SIGUSR2 mends it. `announce` gets the one line that
    says where; OSError when the port is taken."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = EngineServer(options)
    loop.add_signal_handler(signal.SIGUSR1, server.break_probe)
    loop.add_signal_handler(signal.SIGUSR2, server.break_probe, False)
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=CUT_SECONDS, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, options.host, options.port).start()
        announce(_where(options, runner.addresses[0][1]))
        await stop.wait()
        await server.stop()
    finally:
        await runner.cleanup()


async def _write_stream(request: web.Request, stream: Stream, news: asyncio.Event, answer: AnswerText) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"})
    with contextlib.suppress(ConnectionError):  # the client went away: nobody is left to tell
        await response.prepare(request)
        await _write_tokens(response, stream, news, answer)
        if stream.state == "done":
            await response.write(answer.closing())
            await response.write_eof()
        elif request.transport is not None:
            request.transport.abort()  # an answer that is cut must not look like one that ended
    return response


async def _write_tokens(response: web.StreamResponse, stream: Stream, news: asyncio.Event, answer: AnswerText) -> None:
    written = 0
    ended = False
    while not ended:
        await news.wait()
        news.clear()
        ended = stream.ended
        new = answer.token_event * (stream.tokens - written)
        if new:
            await response.write(new if written else answer.opening() + new)
        written = stream.tokens


async def _write_whole(stream: Stream, news: asyncio.Event, document: Callable[[], dict[str, Any]]) -> web.Response:
    while not stream.ended:
        await news.wait()
        news.clear()
    if stream.state == "cut":
        raise BadRequest("The engine stopped before the answer was ready.", status=503)
    return web.json_response(document())


async def _body(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise BadRequest(f"The body is larger than {MAX_BODY_BYTES} bytes.", status=413) from None


@web.middleware
async def _openai_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadRequest as refused:
        return web.json_response(refused.document(), status=refused.status)
    except web.HTTPException as refused:
        return web.json_response(BadRequest(f"{refused.reason}.", status=refused.status).document(), status=refused.status)


def _where(options: EngineOptions, port: int) -> str:
    host = f"[{options.host}]" if ":" in options.host else options.host
    return (
        f"{options.model} at http://{host}:{port}: up to {options.capacity} requests in flight at "
        f"{options.ttft_seconds * 1000:g} ms to the first token and {options.tpot_seconds * 1000:g} ms a token."
    )
