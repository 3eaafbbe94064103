"""The simulator over HTTP: OpenAI's shapes, refusals, loading, stopping."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientConnectionError, ClientPayloadError, ClientSession, web
from aiohttp.test_utils import TestClient, TestServer
from django.core.management import call_command
from django.core.management.base import CommandError

from capacity.simulator.command import main
from capacity.simulator.completion import MAX_BODY_BYTES
from capacity.simulator.options import EngineOptions
from capacity.simulator.server import EngineServer
from capacity.sources.reading import read_engine

FAST = {"ttft_seconds": 0.0, "tpot_seconds": 0.0002}
SLOW = {"ttft_seconds": 0.0, "tpot_seconds": 5.0}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello there"}], "max_tokens": 5}


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[tuple[EngineServer, TestClient]]:
    server = EngineServer(EngineOptions(**{"model": "m", **FAST, **options}))
    async with TestClient(TestServer(server.application())) as client:
        yield server, client


def ask(path: str, body: object, **options: Any) -> tuple[int, Any]:
    async def go() -> tuple[int, Any]:
        async with serving(**options) as (_, client):
            data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
            async with client.post(path, data=data) as answer:
                text = await answer.text()
                return answer.status, text if answer.content_type == "text/event-stream" else json.loads(text)

    return asyncio.run(go())


async def status(request: Any) -> int:
    async with request as answer:
        await answer.read()
        return answer.status


def events(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def test_a_chat_answer_has_its_text_and_its_usage():
    code, answer = ask("/v1/chat/completions", CHAT)
    assert code == 200
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": " token" * 5}
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"] == {"prompt_tokens": 2, "completion_tokens": 5, "total_tokens": 7}


@pytest.mark.parametrize("tokens", [1, 2, 60])
def test_a_chat_stream_has_an_event_a_token_and_ends_with_done(tokens):
    body = {**CHAT, "max_tokens": tokens, "stream": True, "stream_options": {"include_usage": True}}
    code, text = ask("/v1/chat/completions", body)
    *chunks, usage = events(text)
    assert code == 200
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert sum(chunk["choices"][0]["delta"].get("content") == " token" for chunk in chunks) == tokens
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-2:] == [None, "length"]
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == tokens


def test_a_text_stream_has_no_role_and_no_usage_unless_asked():
    code, text = ask("/v1/completions", {"model": "m", "prompt": "once", "max_tokens": 3, "stream": True})
    chunks = events(text)
    assert code == 200
    assert [chunk["choices"][0]["text"] for chunk in chunks] == [" token"] * 3 + [""]
    assert not any("usage" in chunk for chunk in chunks)


def test_an_answer_without_a_limit_stops_by_itself():
    _, answer = ask("/v1/completions", {"model": "m", "prompt": [1, 2, 3]})
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["prompt_tokens"] == 3


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        (b"no json", 400, None),
        (b"\xff\xfe", 400, None),
        (b"[" * 100_000, 400, None),
        ([], 400, None),
        ({}, 400, "model"),
        ({**CHAT, "model": "other"}, 404, "model"),
        ({**CHAT, "messages": []}, 400, "messages"),
        ({**CHAT, "messages": "hello"}, 400, "messages"),
        ({**CHAT, "messages": [{"content": "x"}]}, 400, "messages[0]"),
        ({**CHAT, "messages": [{"role": "user", "content": 3}]}, 400, "messages[0].content"),
        ({**CHAT, "max_tokens": 0}, 400, "max_tokens"),
        ({**CHAT, "max_tokens": True}, 400, "max_tokens"),
        ({**CHAT, "max_tokens": 10**9}, 400, "max_tokens"),
        ({**CHAT, "max_completion_tokens": "7"}, 400, "max_completion_tokens"),
        ({**CHAT, "stream": "yes"}, 400, "stream"),
        ({**CHAT, "stream_options": []}, 400, "stream_options"),
        ({**CHAT, "n": 2}, 400, "n"),
        (b'{"model": "m", "pad": "' + b"x" * MAX_BODY_BYTES + b'"}', 413, None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_bad_request_is_refused_in_openai_s_shape(body, status, param):
    found, answer = ask("/v1/chat/completions", body)
    assert found == status
    assert answer["error"]["param"] == param
    assert answer["error"]["code"] == status
    assert answer["error"]["message"].endswith(".")


def test_embeddings_have_a_row_for_each_text_and_count_its_tokens():
    code, answer = ask("/v1/embeddings", {"model": "m", "input": ["hello there", "hello"]})
    assert code == 200
    assert [row["index"] for row in answer["data"]] == [0, 1]
    assert answer["usage"] == {"prompt_tokens": 3, "total_tokens": 3}


def test_a_ranking_has_a_row_for_each_document_and_counts_the_query_too():
    code, answer = ask("/v1/rerank", {"model": "m", "query": "hello there", "documents": ["hello there", "hello"]})
    assert code == 200
    assert len(answer["results"]) == 2
    assert answer["usage"]["total_tokens"] == 5


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/embeddings", {"input": []}, "input"),
        ("/v1/embeddings", {"input": [["a"]]}, "input"),
        ("/v1/rerank", {"query": "a", "documents": []}, "documents"),
        ("/v1/rerank", {"query": "a", "documents": [1]}, "documents"),
        ("/v1/rerank", {"documents": ["a"]}, "query"),
    ],
)
def test_a_wrong_request_for_embeddings_or_a_ranking_names_its_field(path, body, param):
    code, answer = ask(path, {"model": "m", **body})
    assert (code, answer["error"]["param"]) == (400, param)


def test_an_unknown_path_is_refused_in_openai_s_shape():
    code, answer = ask("/v1/audio/speech", CHAT)
    assert (code, answer["error"]["message"]) == (404, "Not Found.")


def test_while_it_loads_it_is_not_healthy_takes_nothing_and_has_metrics():
    async def go() -> list[int]:
        async with serving(load_seconds=3600) as (_, client):
            asked = [status(client.get(path)) for path in ("/health", "/v1/models", "/metrics")]
            return [await found for found in [*asked, status(client.post("/v1/chat/completions", json=CHAT))]]

    assert asyncio.run(go()) == [503, 503, 200, 503]


def test_once_loaded_it_is_healthy_and_names_its_model():
    async def go() -> tuple[int, Any]:
        async with serving() as (_, client), client.get("/v1/models") as answer:
            return await status(client.get("/health")), await answer.json()

    found, models = asyncio.run(go())
    assert found == 200
    assert [row["id"] for row in models["data"]] == ["m"]


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    """Ask until it is so; the deadline is only for a program that never gets there."""
    async with asyncio.timeout(20):
        while not await true():
            await asyncio.sleep(0.005)


async def in_flight(client: Any) -> int | None:
    async with client.get("/metrics") as answer:
        return read_engine(await answer.text()).in_flight


def test_requests_in_flight_are_in_the_metrics_until_their_clients_leave():
    async def go() -> None:
        async with serving(**SLOW, capacity=1, max_running=2) as (server, client):

            async def counts(number: int) -> bool:
                return await in_flight(client) == number

            streams = [await client.post("/v1/chat/completions", json={**CHAT, "stream": True}) for _ in range(3)]
            assert await in_flight(client) == 3
            assert (server.engine.running, server.engine.waiting) == (2, 1)
            for stream in streams:
                stream.close()
            await until(lambda: counts(0))

    asyncio.run(go())


def test_stopping_lets_nothing_new_in_and_cuts_what_runs():
    async def go() -> None:
        async with serving(**SLOW) as (server, client):
            async with client.post("/v1/chat/completions", json={**CHAT, "stream": True}) as stream:
                await server.stop()
                with pytest.raises((ClientConnectionError, ClientPayloadError)):
                    await stream.read()
            assert await status(client.get("/health")) == 503
            assert server.engine.running == 0

    asyncio.run(go())


def test_a_stream_that_ends_in_time_is_not_cut_by_stopping():
    async def go() -> str:
        body = {**CHAT, "stream": True}
        async with serving() as (server, client), client.post("/v1/chat/completions", json=body) as stream:
            _, text = await asyncio.gather(server.stop(), stream.text())
            return text

    assert len(events(asyncio.run(go()))) == 1 + 5 + 1  # role, tokens, end


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--port", "x", "--model", "m"], "Port is a whole number from 0 to 65535, not 'x'."),
        (["--port", "0", "--model", ""], "Model is a name of 1 to 200 characters without control characters."),
        (["--port", "0", "--model", "m", "--capacity", "0"], "Capacity is a whole number from 1 to 100000, not '0'."),
        (["--port", "0", "--model", "m", "--tpot-ms", "nan"], "Tpot-ms is a number from 0.1 to 60000, not 'nan'."),
        (["--port", "0", "--model", "m", "--capacity", "9", "--max-running", "8"], "Max-running (8) is below capacity (9)"),
        (["--model", "m"], "The following arguments are required: --port."),
        (["--port", "0", "--model", "m", "--cap", "3"], "Unrecognized arguments: --cap 3."),
    ],
)
def test_a_bad_option_is_one_sentence_and_exit_status_2(options, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(options)
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.startswith(words)
    assert told.count("\n") == 1


def test_the_command_refuses_as_the_module_does(capsys):
    with pytest.raises((CommandError, SystemExit)):
        call_command("engine", "--port", "0", "--model", "m", "--capacity", "9", "--max-running", "8")
    assert "below capacity" in capsys.readouterr().err


def start(*options: str) -> tuple[subprocess.Popen[str], str]:
    """The program as its users start it; its URL out of the line that it says."""
    command = [sys.executable, "-m", "capacity.simulator", "--model", "m", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().split(" at ")[1].split(": ")[0]


def test_sigterm_ends_it_cleanly_in_the_middle_of_a_stream():
    process, url = start("--port", "0", "--tpot-ms", "5000", "--ttft-ms", "0")

    async def go() -> None:
        body = {**CHAT, "stream": True}
        async with ClientSession() as session, session.post(f"{url}/v1/chat/completions", json=body) as stream:
            assert await stream.content.readany()
            process.send_signal(signal.SIGTERM)
            with pytest.raises((ClientConnectionError, ClientPayloadError)):
                await stream.read()

    asyncio.run(go())
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_health_page_that_is_broken_on_purpose_is_mended_again_and_the_engine_serves_meanwhile():
    async def go() -> list[int]:
        async with serving() as (server, client):
            found = []
            for broken in (True, False):
                server.break_probe(broken)
                found.append(await status(client.get("/health")))
                found.append(await status(client.post("/v1/chat/completions", json=CHAT)))
            return found

    assert asyncio.run(go()) == [503, 200, 200, 200]


def test_a_taken_port_is_one_sentence_and_exit_status_1(capsys):
    async def taken() -> int:
        runner = web.AppRunner(web.Application())
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            return await asyncio.to_thread(_status_on, str(runner.addresses[0][1]))
        finally:
            await runner.cleanup()

    assert asyncio.run(taken()) == 1


def _status_on(port: str) -> int:
    command = [sys.executable, "-m", "capacity.simulator", "--model", "m", "--port", port]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.stderr.startswith(f"Cannot listen on 127.0.0.1 port {port}: ")
    assert ended.stderr.count("\n") == 1
    return ended.returncode
