"""Whatever lies in Redis, a pass is done and pages are shown: a value that cannot be read is unknown, and hurts no other."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from capacity.briefings import evacuate, mode_facts
from capacity.drivers.process import ProcessDriver
from capacity.last_good_views import views
from capacity.ports import Sample
from capacity.sources.answer_store import AnswerStore
from capacity.sources.gateway import Push
from capacity.sources.push_store import PushStore
from capacity.sources.store import LoadStore
from capacity.tests.fleet import START, Fleet
from capacity.token_rates import TokenRates

pytestmark = pytest.mark.django_db
HASHES = (
    "llmgw:loads:p",
    "llmgw:latencies:p",
    "llmgw:load-failures:p",
    "llmgw:pushes:p",
    "llmgw:push-ignored:p",
    "llmgw:answers:p",
    "llmgw:reports:p",
)
DEEP = "[" * 100_000
VALUES = (
    "",
    "x",
    "null",
    "true",
    "3",
    "-1",
    "1e999",
    "NaN",
    "[]",
    "{}",
    '"text"',
    b"\xff\xfe",
    DEEP,
    "9" * 5000,
    json.dumps(
        {
            "at": "9999-12-31T23:59:59+00:00",
            "replicas": {"chat-1": 5},
            "models": {"chat": {"held": 3, "last_arrival_at": "0001-01-01T00:00:00+00:00"}},
        }
    ),
    json.dumps(
        {
            "at": "2026-11-30T12:00:00+00:00",
            "replicas": {"a\0b": 5},
            "models": {"\ud800": {"held": 3, "last_arrival_at": None}},
            "unknown": ["\0", "\ud800"],
        }
    ),
    json.dumps({"at": "2026-11-30T12:00:00+00:00", "replicas": {}, "models": {}, "unknown": 3}),
    json.dumps({"at": "2026-11-30T12:00:00+00:00", "replicas": [], "models": []}),
    json.dumps({"sampled_at": "9999-12-31T23:59:59+00:00", "in_flight": 3, "output_tokens_total": 10**18}),
    json.dumps({"sampled_at": "0001-01-01T00:00:00+00:00", "in_flight": 3}),
    json.dumps({"answered_at": "9999-12-31T23:59:59+00:00", "failed_since": "0001-01-01T00:00:00+00:00", "reason": ["\0"]}),
    json.dumps({"reason": "a\0b\ud800", "at": "2026-11-30T12:00:00+00:00"}),
    json.dumps({"at": "2026-11-30T12:00:00+00:00", "histograms": {"ttft": [[1, "x"], [2], 3], "e2e": 5}}),
)


@pytest.fixture
def fleet(redis_client, redis_server, settings, monkeypatch) -> Fleet:
    settings.REDIS_URL = redis_server
    found = Fleet(min_replicas=2)
    found.deps = found.make_deps(loads=LoadStore(redis_client), answers=AnswerStore(redis_client), pushes=PushStore(redis_client))
    for module in (mode_facts, evacuate):
        monkeypatch.setattr(module, "deps", lambda: found.deps)
    found.a_pass()
    found.passes(1)
    return found


def pages(fleet: Fleet) -> list[str]:
    return [
        "/",
        f"/replicas/{fleet.names('ready')[0]}/",
        "/models/chat/",
        "/models/chat/mode/",
        "/models/chat/retire/",
        "/nodes/",
        "/nodes/n1/",
        "/nodes/n1/cordon/",
        "/engines/",
        "/metrics",
        "/api/v1/endpoints?pool=p",
    ]


def hurt_nobody(fleet: Fleet, client: Client, count: int) -> None:
    (report,) = fleet.passes(1)
    assert report.outcome == "done", report.error
    assert {path: client.get(path).status_code for path in pages(fleet)[:count]} == dict.fromkeys(pages(fleet)[:count], 200)


@pytest.mark.parametrize("key", HASHES)
def test_a_pass_is_done_over_any_value_of_a_hash(fleet, redis_client, key, admin_client):
    if key == "llmgw:reports:p":
        fleet.deps = fleet.make_deps(driver=ProcessDriver(redis=redis_client, send=lambda *_, **__: None))
    for value in VALUES:
        for name in (*fleet.names("ready"), "n1", "a\0b", "\N{HEBREW LETTER ALEF}<script>"):
            redis_client.hset(key, name, value)
        hurt_nobody(fleet, admin_client, 2)
    hurt_nobody(fleet, admin_client, 11)


@pytest.mark.parametrize("key", [*HASHES, "llmgw:arrivals:p", "llmgw:push-sources:p"])
def test_a_pass_is_done_over_a_key_of_another_kind(fleet, redis_client, key, admin_client):
    redis_client.set(key, "x")
    hurt_nobody(fleet, admin_client, 11)


def test_a_pass_is_done_over_arrivals_at_no_time_and_under_no_name(fleet, redis_client, admin_client):
    for score in ("inf", "-inf", "1e300", "253402300799.9"):
        redis_client.zadd("llmgw:arrivals:p", {"chat": float(score), "x\0": 3.0})
        hurt_nobody(fleet, admin_client, 2)


def test_a_count_that_is_none_keeps_no_push_from_being_taken_and_starts_anew(redis_client):
    store, push = PushStore(redis_client), Push(source="g", at=START, replicas={}, models={})
    redis_client.hset("llmgw:push-ignored:p", "g", "x")
    assert store.ignored("p") == {}
    assert store.push("p", push, ignored=2)
    assert store.push("p", push, ignored=1)
    assert store.ignored("p") == {"g": 3}


@pytest.mark.parametrize("value", [*VALUES, '{"scopes": [], "quotas": []}', '{"in_use": [], "skipped": []}'])
def test_a_last_good_answer_that_cannot_be_read_is_none(redis_client, value):
    for name in ("policies", "measurements"):
        redis_client.set(f"llmgw:last-good:here:{name}", value)
        redis_client.set(f"llmgw:last-good:here:{name}:at", START.isoformat())
    for view in views(redis_client, "here", bound=away):
        assert view.get(START).value is None


@pytest.mark.parametrize("at", ["2026-11-30T12:00:00", "x", "0001-01-01T00:00:00+23:00"])
def test_a_last_good_answer_of_no_time_is_none(redis_client, at):
    redis_client.set("llmgw:last-good:here:policies", '{"scopes": [], "quotas": {}}')
    redis_client.set("llmgw:last-good:here:policies:at", at)
    policies, _ = views(redis_client, "here", bound=away)
    assert policies.get(START).value is None


def away(load: Any) -> Any:
    """A database that does not answer."""

    def read(held: Any) -> Any:
        raise OperationalError("away")

    return read


def test_the_rate_of_tokens_is_known_again_after_a_clock_was_set_back():
    rates, hour = TokenRates(), timedelta(hours=1)
    readings = [(100, START), (200, START - hour), (300, START - hour + timedelta(seconds=10))]
    told = [rates.rates("p", {"r": Sample(in_flight=0, sampled_at=at, output_tokens_total=n)}) for n, at in readings]
    assert told == [{}, {}, {"r": 10.0}]
