"""State folder, port, readiness and signals of the supervisor: right, or a sentence."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from llmgw_site.supervisor import health, place
from llmgw_site.supervisor.interrupts import Asked, Interrupts
from llmgw_site.supervisor.place import Failed


def test_a_state_folder_has_one_supervisor_and_the_second_is_told_which(tmp_path):
    with (
        place.claimed(tmp_path, "http://127.0.0.1:8123"),
        pytest.raises(Failed, match=rf"runs already .*process {os.getpid()}, http://127.0.0.1:8123"),
        place.claimed(tmp_path, "http://127.0.0.1:9000"),
    ):
        pytest.fail("two have it")


def test_a_state_folder_is_free_again_afterwards(tmp_path):
    for _ in range(2):
        with place.claimed(tmp_path, "http://127.0.0.1:8123"):
            pass


def test_a_state_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(Failed, match=r"cannot be written: File exists\. Choose another"),
        place.claimed(tmp_path / "file", ""),
    ):
        pytest.fail("a file is no folder")


def test_a_taken_port_is_a_sentence_that_names_another():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(Failed, match=rf"Port {port} on 127\.0\.0\.1 is taken .* make run PORT={port + 1}"):
            place.check_port("127.0.0.1", port)


@pytest.mark.parametrize("host", ["no such host", "192.0.2.77"])
def test_an_address_that_is_not_ours_is_a_sentence(host):
    with pytest.raises(Failed, match=r"is no address of this machine|Nothing can listen"):
        place.check_port(host, 8000)


class Page(BaseHTTPRequestHandler):
    status, body = 200, b""
    seen: dict[str, str] = {}

    def do_GET(self) -> None:
        type(self).seen = {"path": self.path, "host": self.headers["Host"]}
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def site() -> Iterator[tuple[type[Page], int]]:
    page = type("Mine", (Page,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield page, server.server_address[1]
        server.shutdown()
        thread.join()


def test_a_ready_site_is_ready(site):
    page, port = site
    answer = health.readiness("127.0.0.1", port, name="llm.example.org")
    assert answer.ready
    assert page.seen == {"path": "/readyz", "host": "llm.example.org"}


def test_what_a_site_lacks_is_said_in_its_own_words(site):
    page, port = site
    page.status, page.body = 503, b'{"ready": false, "checks": {"database": "ok", "beat": "no heartbeat"}}'
    answer = health.readiness("127.0.0.1", port, name="x")
    assert (answer.answered, answer.ready, answer.lacking) == (True, False, "beat: no heartbeat")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"checks": 3}', b"\xff"])
def test_an_answer_of_another_kind_is_named_by_its_status(site, body):
    page, port = site
    page.status, page.body = 500, body
    assert health.readiness("127.0.0.1", port, name="x").lacking == "/readyz answers with status 500"


def test_nothing_that_listens_is_no_answer():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        answer = health.readiness("127.0.0.1", free.getsockname()[1], name="x")
    assert not answer.answered
    assert not answer.ready


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:8000"), ("0.0.0.0", "http://127.0.0.1:8000"), ("::1", "http://[::1]:8000")],
)
def test_the_url_is_one_that_can_be_opened(host, url):
    assert health.base_url(host, 8000) == url


@pytest.mark.parametrize(
    ("allowed", "name"),
    [(["a.example", "localhost"], "localhost"), ([".example.org"], "example.org"), (["*"], "localhost"), ([], "localhost")],
)
def test_the_site_is_asked_under_a_name_that_it_answers_to(allowed, name):
    assert health.host_header(allowed) == name


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_comes_out_of_the_next_pause_and_once(number):
    with Interrupts() as interrupts:
        os.kill(os.getpid(), number)
        with pytest.raises(Asked):
            interrupts.pause(5)
        interrupts.pause(0)
        os.kill(os.getpid(), number)
        with pytest.raises(Asked):
            interrupts.pause(5)


def test_a_childs_death_asks_nobody_to_end():
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGCHLD)
        interrupts.pause(5)
