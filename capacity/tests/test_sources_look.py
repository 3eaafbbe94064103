"""One look at an engine: what it answers, works on and serves; hostile answers say nothing."""

from __future__ import annotations

import http.server
import threading

import pytest

from capacity.sources.look import look

METRICS = 'vllm:num_requests_running{model_name="chat"} 2\nvllm:num_requests_waiting{model_name="chat"} 1\n'


@pytest.fixture
def engine():
    """(its URL, path → body)."""
    bodies: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path in bodies else 404)
            self.end_headers()
            self.wfile.write(bodies.get(self.path, b""))

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()
    server.server_close()


def test_an_engine_tells_what_it_works_on_and_serves(engine):
    url, bodies = engine
    bodies.update({"/health": b"", "/metrics": METRICS.encode(), "/v1/models": b'{"data": [{"id": "chat"}, {"id": "lora"}]}'})
    found = look(f"{url}/v1")
    assert (found.silence, found.in_flight, found.unread, found.serves) == ("", 3, "", ("chat", "lora"))


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"null", b'{"data": 5}', b"[" * 100_000, b"\xff\xfe", b" " * 300_000, b"<html>"],
    ids=["empty", "list", "null", "number", "deep", "bytes", "long", "html"],
)
def test_a_list_of_models_that_is_none_says_nothing(engine, body):
    url, bodies = engine
    bodies.update({"/health": b"", "/v1/models": body})
    assert look(url).serves is None


def test_rows_that_are_no_models_are_left_out(engine):
    url, bodies = engine
    bodies.update({"/v1/models": b'{"data": [{"id": 5}, 7, {"id": "chat"}]}'})
    found = look(url)
    assert (found.serves, found.in_flight) == (("chat",), None)
    assert found.silence and found.unread


def test_names_of_models_hold_nothing_that_a_terminal_obeys_and_no_page_can_send(engine):
    url, bodies = engine
    bodies.update({"/v1/models": rb'{"data": [{"id": "a\u001b[2Jb"}, {"id": "\ud800"}, {"id": "\u0000"}]}'})
    assert look(url).serves == ("a\ufffd[2Jb", "\ufffd", "\ufffd")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://169.254.169.254"])
def test_one_that_is_not_there_or_may_not_be_read_is_silent(url):
    found = look(url)
    assert found.silence and found.unread and found.serves is None
