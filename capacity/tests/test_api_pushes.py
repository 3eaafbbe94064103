"""Bad pushes: each is answered in words, takes nothing it should not, and is seen by an operator."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from capacity.exporter import FleetCollector
from capacity.models import Pass, Replica
from capacity.sources.gateway import Push
from capacity.sources.push_store import PushStore
from capacity.tests.api_people import person
from capacity.tests.factories import make_model, make_pool, make_profile
from capacity.tests.fleet import Fleet

pytestmark = pytest.mark.django_db


@pytest.fixture
def store(redis_client, redis_server, settings):
    settings.REDIS_URL = redis_server
    return PushStore(redis_client)


@pytest.fixture
def gateway(store):
    return person("gateway", is_service=True)


@pytest.fixture
def chat():
    model = make_model("chat", pool=make_pool("p"))
    run(model, "chat-1")
    return model


def run(model, name, **fields):
    profile = model.profiles.first() or make_profile(model)
    return Replica.objects.create(name=name, pool=model.pool, model=model, profile=profile, state="ready", **fields)


def push(client, document, pool="p"):
    body = document if isinstance(document, str | bytes) else json.dumps(document)
    return client.post(f"/api/v1/load?pool={pool}", body, content_type="application/json")


def test_another_pools_replicas_and_what_nobody_has_are_left_out_named_and_remembered(gateway, store, chat):
    run(make_model("other", pool=make_pool("q")), "other-1")
    run(chat, "chat-0", gone_at=timezone.now())
    document = {"source": "g", "replicas": {"chat-1": 3, "chat-0": 1, "other-1": 9, "nope": 2}, "models": {"other": {"held": 4}}}
    answer = push(gateway, document)
    assert answer.json() == {
        "source": "g",
        "taken": {"replicas": 1, "models": 0},
        "ignored": ["chat-0", "nope", "other", "other-1"],
    }
    [stored] = store.read("p").pushes
    assert (stored.replicas, stored.models, stored.account) == ({"chat-1": 3}, {}, "gateway")
    assert stored.unknown == ("other", "nope", "other-1"), "one that is gone is no fault of the gateway's"
    assert store.read("q").pushes == ()


def test_names_left_out_are_counted_for_prometheus_until_the_source_goes(gateway, store, chat):
    for _ in range(2):
        push(gateway, {"source": "g", "replicas": {"nope": 1, "chat-1": 1}})
    assert store.ignored("p") == {"g": 2}
    found = {metric.name: metric for metric in FleetCollector(timezone.now(), 15, store.ignored).collect()}
    [sample] = [one for one in found["llmgw_push_ignored_names"].samples if one.name.endswith("_total")]
    assert (sample.labels, sample.value) == ({"pool": "p", "source": "g"}, 2)
    later = timezone.now() + timedelta(hours=2)
    store.push("p", Push(source="h", at=later))
    assert store.ignored("p") == {"h": 0}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ('{"source": "g", "replicas": {"chat-1": -1}}', "$.replicas['chat-1']"),
        ('{"source": "g", "replicas": {"chat-1": 1.5}}', "$.replicas['chat-1']"),
        ('{"source": "g", "replicas": {"chat-1": true}}', "$.replicas['chat-1']"),
        ('{"source": "g", "replicas": {"chat-1": 1e999}}', "$.replicas['chat-1']"),
        ('{"source": "g", "replicas": {"chat-1": 1%s}}' % ("0" * 400), "$.replicas['chat-1']"),
        ('{"source": "g", "replicas": {"chat-1": "3"}}', "$.replicas['chat-1']"),
        ('{"source": "g", "replicas": {"chat-1": null}}', "$.replicas['chat-1']"),
        ('{"source": "g", "replicas": [1]}', "$.replicas"),
        ('{"source": "g", "models": {"chat": {"held": true}}}', "$.models['chat'].held"),
        ('{"source": "g", "models": {"chat": {"last_arrival_seconds_ago": -1}}}', "$.models['chat'].last_arrival_seconds_ago"),
        ('{"source": "g", "models": {"chat": {"last_arrival_seconds_ago": 1e999}}}', "$.models['chat'].last_arrival_seconds_ago"),
        ('{"source": true}', "$.source"),
        ("[]", "$"),
    ],
)
def test_numbers_that_count_no_requests_are_refused_with_their_path_and_take_nothing(gateway, store, chat, document, path):
    answer = push(gateway, document)
    assert answer.status_code == 400
    assert path in answer.json()["error"]["fields"]
    assert store.read("p").pushes == ()


@pytest.mark.parametrize(
    "document",
    [
        '{"source": "g", "replicas": {"chat-1": NaN}}',
        '{"source": "g", "replicas": {"chat-1": Infinity}}',
        '{"source": "g", "source": "h"}',
        "[" * 100_000,
        '{"source": "g", "models": ' + '{"a":' * 800 + '"\\u0000"' + "}" * 800 + "}",
        b'{"source": "\xff"}',
        "",
    ],
)
def test_what_is_no_document_is_refused_in_words(gateway, store, chat, document):
    answer = push(gateway, document)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]
    assert store.read("p").pushes == ()


def test_a_body_of_more_than_10_mb_is_refused_before_it_is_read_as_json(gateway, store, chat, monkeypatch):
    monkeypatch.setattr("quotas.api.parsers.json.loads", lambda *_, **__: pytest.fail("it was parsed"))
    assert push(gateway, "[" + "1," * 5_300_000 + "1]").status_code == 413


def test_no_account_pushes_under_a_source_that_another_ones_requests_stand_under(gateway, store, chat):
    other = person("other-gateway", is_service=True)
    assert push(gateway, {"source": "g", "replicas": {"chat-1": 8}}).status_code == 200
    answer = push(other, {"source": "g", "replicas": {"chat-1": 0}})
    assert answer.status_code == 409
    assert "a source of its own" in answer.json()["error"]["message"]
    assert store.read("p").pushes[0].replicas == {"chat-1": 8}
    assert push(other, {"source": "h", "replicas": {"chat-1": 2}}).status_code == 200
    assert push(gateway, {"source": "g"}).status_code == 200, "a goodbye"
    assert push(other, {"source": "g", "replicas": {"chat-1": 1}}).status_code == 200


def test_a_source_that_was_silent_for_ten_minutes_is_anybodys(store, chat):
    now = timezone.now()
    store.push("p", Push(source="g", at=now, replicas={"chat-1": 1}, account="one"))
    assert store.taken_by("p", "g", now + timedelta(seconds=599)) == "one"
    assert store.taken_by("p", "g", now + timedelta(seconds=601)) == ""
    assert store.taken_by("p", "nobody", now) == ""


def test_a_pass_names_the_gateway_that_pushes_for_what_was_never_here():
    fleet = Fleet(min_replicas=1)
    fleet.pushes.pushes = (
        Push(source="g", at=fleet.fake.now(), unknown=("a", "b", "c", "d", "e")),
        Push(source="silent", at=fleet.fake.now() - timedelta(hours=1), unknown=("z",)),
    )
    fleet.a_pass()
    told = [row for row in Pass.objects.get().problems if row["code"] == "unknown_push"]
    assert [row["subject"] for row in told] == ["gateway:g"]
    assert told[0]["detail"] == "pushes for a, b, c, d and 1 more, which p has never had; that counts for nobody"
