"""One request to an OpenAI-compatible endpoint, timed from the moment before it is sent."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import aiohttp

from capacity.bench.events import MOST_CHUNKS, Events, count, printable, said
from capacity.sources.address import CheckedResolver, Network
from capacity.sources.engines import Limits, why_unreadable

FaultKind = Literal[
    "unreachable",  # no connection, a refused address, a name that does not resolve
    "status",  # another status than 200
    "timeout",
    "broken",  # it broke off before it said that it was whole
    "error",  # status 200 with an error in it
    "empty",  # whole, without any text
    "not_streamed",  # one document instead of a stream: it has no first token
]
MOST_BODY_BYTES: Final = 64 * 1024 * 1024
KEEP_SECONDS: Final = 2.0  # servers close idle connections after five: ours end before, or a request would be lost with one
Chunks = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a request gave no answer: `why` is a sentence without secrets; `status` where the server answered with one."""

    kind: FaultKind
    why: str
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One request. Times are seconds: `began` and `ended` of the steady clock, the others durations, to the first and to the last
    chunk of text (of embeddings and rerank: `e2e_seconds` alone, to the end).

    `output_tokens` are as the endpoint counts them, else the chunks (`counted`). `gaps`: seconds from chunk to chunk."""

    began: float
    ended: float
    fault: Fault | None = None
    ttft_seconds: float | None = None
    e2e_seconds: float | None = None
    chunks: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    counted: bool = False
    gaps: Sequence[float] = ()

    @property
    def tpot_seconds(self) -> float | None:
        """(e2e − TTFT) ÷ (output tokens − 1); None of fewer than two tokens."""
        if self.ttft_seconds is None or self.e2e_seconds is None or (self.output_tokens or 0) < 2:
            return None
        return (self.e2e_seconds - self.ttft_seconds) / ((self.output_tokens or 0) - 1)


@dataclass(slots=True)
class _Try:
    """One try of a request. `reused`: on a connection that had served before; `lost`: it ended before any answer. Both together
    say nothing of the server, which may close such a connection whenever it likes (llama.cpp does after each stream)."""

    reused: bool = False
    lost: bool = False


async def _reused(http: aiohttp.ClientSession, context: Any, params: aiohttp.TraceConnectionReuseconnParams) -> None:
    if isinstance(context.trace_request_ctx, _Try):
        context.trace_request_ctx.reused = True


def session(token: str | None, allowed: Sequence[Network]) -> aiohttp.ClientSession:
    """As many connections as there are requests at once; no proxy, no cookie, no redirect to follow."""
    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(_reused)
    return aiohttp.ClientSession(
        trace_configs=[trace],
        connector=aiohttp.TCPConnector(limit=0, resolver=CheckedResolver(allowed), keepalive_timeout=KEEP_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        trust_env=False,
        headers={"Accept-Encoding": "identity", "Content-Type": "application/json"}
        | ({"Authorization": f"Bearer {token}"} if token else {}),
    )


class _Refused(Exception):
    def __init__(self, kind: FaultKind, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.fault = Fault(kind=kind, why=why, status=status)


async def ask_stream(
    http: aiohttp.ClientSession,
    url: str,
    body: bytes,
    *,
    timeout_seconds: float,
    on_chunks: Chunks = lambda number: None,
    most_chunks: int = MOST_CHUNKS,
) -> Answer:
    """Ask for a stream and hear it to its end; what goes wrong is in the answer, also one that does not end. `on_chunks` is told
    of text as it comes."""
    events = Events(most_chunks=most_chunks)
    began, fault = await _tried(timeout_seconds, lambda once: _hear(http, url, body, events, on_chunks, once))
    fault = fault or _verdict(events)
    first, last = (None, None) if fault else (events.first_at, events.last_at)
    tokens = events.output_tokens or events.chunks
    return Answer(
        began=began,
        ended=time.monotonic(),
        fault=fault,
        ttft_seconds=None if first is None else first - began,
        e2e_seconds=None if last is None else last - began,
        chunks=events.chunks,
        input_tokens=events.input_tokens,
        output_tokens=None if fault else tokens,
        counted=not fault and not events.output_tokens,
        gaps=events.gaps,
    )


async def ask_whole(http: aiohttp.ClientSession, url: str, body: bytes, *, timeout_seconds: float) -> Answer:
    """Ask for embeddings or a ranking: a document, in which only its usage is of interest."""
    heard: list[bytes] = []
    began, fault = await _tried(timeout_seconds, lambda once: _take(http, url, body, heard, once))
    ended = time.monotonic()
    usage = {} if fault else _document(heard[0])
    if usage is None:
        fault = Fault(kind="broken", why="It answered with something that is no JSON object.")
    elif usage.get("error"):
        fault = Fault(kind="error", why=f"It answered with an error: {said(usage)}")
    return Answer(
        began=began,
        ended=ended,
        fault=fault,
        e2e_seconds=None if fault else ended - began,
        input_tokens=None if fault else _input_tokens((usage or {}).get("usage")),
    )


async def _tried(seconds: float, work: Callable[[_Try], Awaitable[None]]) -> tuple[float, Fault | None]:
    """When the try that counts began, and what went wrong with it."""
    while True:
        began, once = time.monotonic(), _Try()
        fault = await _within(seconds, work(once), once)
        if not (once.reused and once.lost):
            return began, fault


async def _within(seconds: float, work: Awaitable[None], once: _Try) -> Fault | None:
    """Cancelled or late, the connection is closed with the request: the server sees that nobody listens any longer."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except _Refused as refused:
        return refused.fault
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
        once.lost = isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)
        return Fault(kind=_kind(error), why=why_unreadable(error, Limits(seconds_each=seconds)))
    return None


def _kind(error: Exception) -> FaultKind:
    if isinstance(error, TimeoutError):
        return "timeout"
    unreachable = isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError)
    return "unreachable" if unreachable else "broken"


async def _hear(http: aiohttp.ClientSession, url: str, body: bytes, events: Events, on_chunks: Chunks, once: _Try) -> None:
    async with http.post(url, data=body, allow_redirects=False, trace_request_ctx=once) as response:
        await _check(response)
        async for data in response.content.iter_any():
            on_chunks(events.feed(data, time.monotonic()))
            if events.error is not None:
                return
        events.end(time.monotonic())


async def _take(http: aiohttp.ClientSession, url: str, body: bytes, heard: list[bytes], once: _Try) -> None:
    async with http.post(url, data=body, allow_redirects=False, trace_request_ctx=once) as response:
        await _check(response)
        heard.append(await _body(response))


async def _check(response: aiohttp.ClientResponse) -> None:
    if response.status == 200:
        return
    # what a server says to a wrong key may name the key
    words = "" if response.status in (401, 403) else said(_document(await _body(response)))
    raise _Refused("status", f"It answered with status {response.status}{f': {words}' if words else '.'}", response.status)


async def _body(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for data in response.content.iter_any():
        body += data
        if len(body) > MOST_BODY_BYTES:
            raise _Refused("broken", f"It answered with more than {MOST_BODY_BYTES} bytes.")
    return bytes(body)


def _verdict(events: Events) -> Fault | None:
    if events.error is not None:
        return Fault(kind="error", why=printable(f"It answered with an error: {events.error or 'it does not say which'}"))
    if events.whole:
        return Fault(kind="not_streamed", why="It answered with one document instead of a stream, which has no first token.")
    if not events.finished:
        return Fault(kind="broken", why="The answer broke off before its end.")
    return None if events.chunks else Fault(kind="empty", why="It answered without any text.")


def _document(body: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _input_tokens(usage: object) -> int | None:
    """Rerankers say only the total."""
    return count(usage.get("prompt_tokens"), count(usage.get("total_tokens"))) if isinstance(usage, dict) else None
