"""Whether an engine answers: its health page, else its metrics; and what is kept of it."""

from __future__ import annotations

import asyncio
import http.server
import threading
from datetime import UTC, datetime, timedelta

import pytest
import redis

from capacity.models import Replica
from capacity.observation import endpoint_watch
from capacity.ports import Answer
from capacity.sources.answer_store import AnswerStore
from capacity.sources.answers import ask, base_url
from capacity.sources.engines import Limits
from capacity.tests.factories import make_profile

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def engine():
    """A server whose answers are set by path; anything else is 404."""
    statuses: dict[str, int] = {}
    hang = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status = statuses.get(self.path, 404)
            if status == 0:
                hang.wait(30)
                return
            self.send_response(status)
            self.send_header("Location", "http://169.254.169.254/")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", statuses
    hang.set()
    server.shutdown()
    server.server_close()


def asked(url: str, **limits) -> str:
    return asyncio.run(ask({"e": url}, limits=Limits(**limits)))["e"]


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({"/health": 200}, ""),
        ({"/health": 204}, ""),
        ({"/metrics": 200}, ""),
        ({"/health": 503, "/metrics": 200}, ""),
        ({"/health": 302}, "Answered with status 302 at /health and 404 at its metrics."),
        ({}, "Answered with status 404 at /health and 404 at its metrics."),
    ],
)
def test_health_or_metrics_will_do_and_no_redirect_is_followed(engine, statuses, expected):
    url, given = engine
    given.update(statuses)
    assert asked(url) == asked(f"{url}/v1") == expected


def test_one_that_hangs_or_is_not_there_has_a_sentence(engine):
    url, given = engine
    given["/health"] = 0
    assert asked(url, seconds_each=0.2) == "No complete answer within 0.2 s."
    assert "Cannot be connected to" in asked("http://127.0.0.1:1")
    assert "link-local" in asked("http://169.254.169.254")


@pytest.mark.parametrize(
    "url", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/", "http://h:1/metrics", "http://h:1/v1?model=x"]
)
def test_the_root_of_an_engine_is_found_from_what_people_write(url):
    assert base_url(url) == "http://h:1"


def test_the_first_failure_is_kept_until_it_answers_again(redis_client: redis.Redis) -> None:
    store = AnswerStore(redis_client)
    rounds = ["", "no", "still no", ""]
    seen = []
    for number, said in enumerate(rounds):
        store.write("p", {"e": said}, NOW + timedelta(seconds=10 * number))
        seen.append((store.answers("p") or {})["e"])
    at = [NOW + timedelta(seconds=10 * number) for number in range(4)]
    assert seen == [
        Answer(answered_at=at[0]),
        Answer(answered_at=at[0], failed_since=at[1], reason="no"),
        Answer(answered_at=at[0], failed_since=at[1], reason="still no"),
        Answer(answered_at=at[3]),
    ]


def test_what_is_no_longer_asked_is_forgotten_and_rubbish_says_nothing(redis_client: redis.Redis) -> None:
    store = AnswerStore(redis_client)
    store.write("p", {"a": "", "b": ""}, NOW)
    redis_client.hset("llmgw:answers:p", mapping={"b": "rubbish", "c": '{"answered_at": 5, "failed_since": "x"}'})
    assert store.answers("p") == {"a": Answer(answered_at=NOW), "c": Answer()}
    store.write("p", {}, NOW)
    assert store.answers("p") == {}


def test_a_store_that_is_away_is_unknown() -> None:
    away = AnswerStore(redis.Redis(port=1, socket_connect_timeout=0.2))
    assert away.answers("p") is None
    assert not away.write("p", {"a": ""}, NOW)


@pytest.mark.django_db
def test_only_what_is_registered_and_not_forgotten_is_asked(redis_client: redis.Redis, engine) -> None:
    url, given = engine
    given["/health"] = 200
    profile = make_profile()
    fields = {"pool": profile.model.pool, "model": profile.model, "profile": profile, "state": "ready"}
    Replica.objects.create(name="own", url=url, is_registered=True, **fields)
    Replica.objects.create(name="ours", url=url, **fields)
    Replica.objects.create(name="gone", url=url, is_registered=True, gone_at=NOW, **{**fields, "state": "gone"})
    endpoint_watch.watch_into_store(redis_client, NOW)
    assert AnswerStore(redis_client).answers(profile.model.pool.name) == {"own": Answer(answered_at=NOW)}


@pytest.mark.django_db
def test_a_round_is_left_out_while_the_former_one_is_at_work(redis_client: redis.Redis, monkeypatch) -> None:
    rounds = []

    def a_round(client, now):
        rounds.append(now)
        if len(rounds) == 1:
            endpoint_watch.watch_into_store(client, NOW)

    monkeypatch.setattr(endpoint_watch, "a_round", a_round)
    for _ in range(2):
        endpoint_watch.watch_into_store(redis_client, NOW)
    assert len(rounds) == 2, "the one in between is left out, the one after it is not"
    endpoint_watch.watch_into_store(redis.Redis(port=1, socket_connect_timeout=0.2), NOW)
    assert len(rounds) == 2
