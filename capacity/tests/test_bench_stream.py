"""One request of a sweep: what its stream says, split anywhere, and what can go wrong with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from capacity.bench.events import Events
from capacity.bench.stream import Answer, ask_stream, ask_whole, session
from capacity.simulator.options import EngineOptions
from capacity.simulator.server import EngineServer


def event(**delta: Any) -> bytes:
    return (
        b"data: "
        + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None}).encode()
        + b"\n\n"
    )


ROLE = event(role="assistant", content="")
TEXT = event(content='a "content": "b" \\ "usage": {')
THOUGHT = event(reasoning_content="hm", content=None)
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"length"}]}\r\n\r\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5}}\n\n'
DONE = b"data: [DONE]"
STREAM = b": ping\n\n" + ROLE + THOUGHT + TEXT + TEXT + STOP + USAGE + DONE


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_a_stream_says_the_same_however_it_is_split(cuts):
    events = Events()
    edges = [0, *sorted(cuts), len(STREAM)]
    told = sum(events.feed(STREAM[start:end], float(end)) for start, end in pairwise(edges))
    events.end(0.0)
    assert told == events.chunks == 3
    assert (events.input_tokens, events.output_tokens) == (7, 5)
    assert events.finished and events.error is None and not events.whole
    assert len(events.gaps) == 2


def test_the_first_chunk_with_text_is_the_first_token_and_gaps_are_from_chunk_to_chunk():
    events = Events()
    for at, data in enumerate([ROLE, TEXT, TEXT + THOUGHT, STOP], start=1):
        events.feed(data, float(at))
    assert (events.first_at, events.last_at, events.chunks) == (2.0, 3.0, 3)
    assert events.gaps == [1.0, 0.0]


def test_text_completions_carry_text():
    events = Events()
    assert events.feed(b'data: {"choices":[{"text":" a"}]}\n\ndata:{"choices":[{"text":""}]}\n\n', 1.0) == 1


@pytest.mark.parametrize(
    "data",
    [
        b'data: {"error": {"message": "out of\\u001b[31m memory", "code": 500}}\n\n',
        b'data: {"object": "error", "message": "out of\\u001b[31m memory"}\n\n',
        b'error: {"code": 500, "message": "out of\\u001b[31m memory"}\n\n',
        b'{"error":\n {"message": "out of\\u001b[31m memory"}}',
    ],
)
def test_an_error_is_one_in_whatever_shape_it_comes_and_without_what_a_terminal_obeys(data):
    events = Events()
    events.feed(data, 1.0)
    events.end(1.0)
    assert events.error == "out of [31m memory"


@given(st.binary(max_size=300))
def test_no_bytes_raise(data):
    events = Events()
    events.feed(data, 1.0)
    events.feed(b"data: " + data + b"\n", 1.0)
    events.end(1.0)


def test_tpot_counts_tokens_and_not_chunks():
    answer = Answer(began=0.0, ended=2.0, ttft_seconds=0.5, e2e_seconds=2.0, chunks=4, output_tokens=16)
    assert answer.tpot_seconds == 0.1
    assert Answer(began=0.0, ended=2.0, ttft_seconds=0.5, e2e_seconds=0.5, output_tokens=1).tpot_seconds is None


# --- against a server ---------------------------------------------------------------------------------------------------


async def asked(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]], *, token: str | None = None, seconds=5.0, ask=ask_stream
) -> Answer:
    app = web.Application()
    app.router.add_post("/v1/x", handler)
    async with TestServer(app) as server, session(token, ()) as http:
        return await ask(http, str(server.make_url("/v1/x")), b"{}", timeout_seconds=seconds)


def writes(*parts: bytes, cut: bool = False, status: int = 200):
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status)
        await response.prepare(request)
        for part in parts:
            await response.write(part)
        if cut:
            request.transport.abort()
        return response

    return handler


def test_an_answer_has_its_times_and_the_endpoint_s_own_counts():
    found = asyncio.run(asked(writes(ROLE, TEXT, TEXT, STOP, USAGE, DONE)))
    assert found.fault is None and not found.counted
    assert (found.chunks, found.input_tokens, found.output_tokens) == (2, 7, 5)
    assert 0 < found.ttft_seconds <= found.e2e_seconds <= found.ended - found.began


def test_without_a_usage_the_chunks_are_the_tokens_and_that_is_said():
    found = asyncio.run(asked(writes(ROLE, TEXT, TEXT, STOP, DONE)))
    assert found.counted and found.output_tokens == 2 and found.input_tokens is None


def test_a_stream_that_does_not_end_is_left_where_it_is_far_longer_than_asked_for():
    found = asyncio.run(asked(writes(*[TEXT * 100] * 20, STOP, DONE), ask=partial(ask_stream, most_chunks=1000)))
    assert found.fault.kind == "error"
    assert "more than 1000 pieces of text came, far more than were asked for" in found.fault.why


@pytest.mark.parametrize("count", [10**400, 10**15, -5, 1e308, True, "9"])
def test_a_count_that_no_answer_can_have_is_none(count):
    usage = b"data: " + json.dumps({"choices": [], "usage": {"prompt_tokens": count, "completion_tokens": count}}).encode()
    found = asyncio.run(asked(writes(ROLE, TEXT, TEXT, STOP, usage + b"\n\n", DONE)))
    assert (found.fault, found.counted, found.output_tokens, found.input_tokens) == (None, True, 2, None)


@pytest.mark.parametrize(
    ("handler", "kind", "words"),
    [
        (writes(ROLE, TEXT), "broken", "broke off before its end"),
        (writes(ROLE, TEXT, cut=True), "broken", "broke off"),
        (writes(ROLE, STOP, DONE), "empty", "without any text"),
        (writes(b'data: {"error": {"message": "no memory"}}\n\n'), "error", "no memory"),
        (writes(b'{"error": {"message": "no memory"}}'), "error", "no memory"),
        (writes(b'{"choices": [{"message": {"content": "all at once"}}]}'), "not_streamed", "no first token"),
        (writes(b'{"error": {"message": "busy"}}', status=503), "status", "status 503: busy"),
        (writes(b"<html>", status=302), "status", "status 302."),
        (writes(b'{"error": {"message": "wrong key s3cret"}}', status=401), "status", "status 401."),
    ],
)
def test_what_goes_wrong_has_a_kind_and_a_sentence(handler, kind, words):
    found = asyncio.run(asked(handler, token="s3cret"))
    assert found.fault.kind == kind
    assert words in found.fault.why and "s3cret" not in found.fault.why
    assert found.output_tokens is None and found.ttft_seconds is None


def test_a_token_is_sent_as_a_bearer_s_and_shown_nowhere():
    seen = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers["Authorization"])
        return web.json_response({"usage": {"total_tokens": 12}})

    found = asyncio.run(asked(handler, token="s3cret", ask=ask_whole))
    assert seen == ["Bearer s3cret"]
    assert found.input_tokens == 12 and found.e2e_seconds > 0 and found.ttft_seconds is None


def test_an_endpoint_that_hangs_is_a_timeout():
    async def hang(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        raise AssertionError

    found = asyncio.run(asked(hang, seconds=0.05))
    assert found.fault.kind == "timeout" and "0.05 s" in found.fault.why


def test_a_connection_that_the_server_closed_after_an_answer_is_no_error_of_the_next_request():
    async def go() -> list[Answer]:
        tasks = set()
        app_answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" + TEXT + STOP

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(asyncio.current_task())
            await reader.readuntil(b"{}")
            writer.write(app_answer % len(TEXT + STOP))
            await reader.read(1)  # the next request has come: it is lost with the connection
            writer.transport.abort()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/x"
        async with session(None, ()) as http:
            found = [await ask_stream(http, url, b"{}", timeout_seconds=5) for _ in range(3)]
        server.close()
        await asyncio.gather(*tasks)
        return found

    assert [found.fault for found in asyncio.run(go())] == [None, None, None]


def test_nobody_there_is_unreachable():
    async def go() -> Answer:
        async with session(None, ()) as http:
            return await ask_stream(http, "http://127.0.0.1:1/v1/x", b"{}", timeout_seconds=5)

    assert asyncio.run(go()).fault.kind == "unreachable"


def test_a_request_that_is_cancelled_ends_at_the_engine_too():
    async def go() -> int:
        engine = EngineServer(EngineOptions(model="m", ttft_seconds=0.0, tpot_seconds=5.0))
        heard = asyncio.Event()
        body = json.dumps({"model": "m", "prompt": "a", "stream": True, "max_tokens": 9}).encode()
        app = engine.application()
        async with TestServer(app, handler_cancellation=True) as server, session(None, ()) as http:
            url = str(server.make_url("/v1/completions"))
            task = asyncio.create_task(ask_stream(http, url, body, timeout_seconds=60, on_chunks=lambda number: heard.set()))
            await heard.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            while engine.engine.running:
                await asyncio.sleep(0.01)
            return engine.engine.running

    assert asyncio.run(go()) == 0
