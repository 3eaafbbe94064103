"""One shape for every error, and no request that breaks the server."""

from __future__ import annotations

import json
import logging

import pytest
from django.db import OperationalError

from capacity.tests.api_people import person
from capacity.tests.factories import make_model, make_node, make_pool, make_profile
from quotas.api.throttles import WriteThrottle
from quotas.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin():
    return person("ada", is_superuser=True)


def error_of(answer, status):
    assert answer.status_code == status, answer.content
    error = answer.json()["error"]
    assert {"code", "message", "fields", "request_id"} <= error.keys()
    assert answer["X-Request-Id"] == error["request_id"]
    assert error["message"]
    assert all(isinstance(sentence, str) for sentences in error["fields"].values() for sentence in sentences)
    return error


def post(client, path, body, kind="application/json"):
    return client.generic("POST", f"/api/v1/{path}", body, content_type=kind)


class TestShape:
    def test_an_address_that_is_none(self, admin):
        assert error_of(admin.get("/api/v1/nothing"), 404)["code"] == "not_found"
        assert "slash" in error_of(admin.post("/api/v1/models/"), 404)["message"]

    def test_a_row_that_is_none(self, admin):
        assert error_of(admin.get("/api/v1/models/none"), 404)["code"] == "not_found"
        assert error_of(admin.get("/api/v1/quotas/999999999999999999999999"), 404)["code"] == "not_found"

    def test_a_method_that_is_none(self, admin):
        assert error_of(admin.delete("/api/v1/models"), 405)["code"] == "method_not_allowed"

    def test_a_body_of_another_kind(self, admin):
        make_pool("p")
        assert error_of(post(admin, "load", "source: x", "text/yaml"), 415)["code"] == "unsupported_media_type"

    def test_an_answer_of_another_kind(self, admin):
        assert error_of(admin.get("/api/v1/models", headers={"Accept": "text/html"}), 406)["code"] == "not_acceptable"

    @pytest.mark.parametrize("path", ["load", "plan", "models"])
    def test_a_body_beyond_10_mb(self, admin, path):
        make_pool("p")
        assert error_of(post(admin, path, b'"' + b"x" * (10 * 1024 * 1024) + b'"'), 413)["code"] == "too_large"

    def test_too_many_writes(self, admin, monkeypatch):
        make_model("m")
        monkeypatch.setattr(WriteThrottle, "THROTTLE_RATES", {**WriteThrottle.THROTTLE_RATES, "wake": "1/min"})
        assert admin.post("/api/v1/models/m/wake").status_code == 202
        answer = admin.post("/api/v1/models/m/wake")
        assert error_of(answer, 429)["code"] == "throttled"
        assert int(answer["Retry-After"]) > 0
        # reading goes on, and so does another account
        assert admin.get("/api/v1/models/m").status_code == 200
        assert person("olga", is_operator=True).post("/api/v1/models/m/wake").status_code == 202

    def test_what_nobody_expected_is_logged_and_says_nothing(self, admin, monkeypatch, caplog):
        def broken(*args, **kwargs):
            raise RuntimeError("the secret inside")

        monkeypatch.setattr("capacity.api.verbs.endpoints_document", broken)
        make_pool("p")
        with caplog.at_level(logging.ERROR, "quotas.api.errors"):
            answer = admin.get("/api/v1/endpoints")
        assert error_of(answer, 500)["code"] == "server_error"
        assert b"secret" not in answer.content
        assert "the secret inside" in caplog.text

    def test_a_database_that_is_away_is_503(self, admin, monkeypatch):
        def away(*args, **kwargs):
            raise OperationalError("no route to db.internal")

        monkeypatch.setattr("capacity.api.verbs.endpoints_document", away)
        make_pool("p")
        answer = admin.get("/api/v1/endpoints")
        assert error_of(answer, 503)["code"] == "unavailable"
        assert b"db.internal" not in answer.content

    def test_live_answers_are_kept_by_no_cache(self, admin):
        for path in ("models", "endpoints", "nothing"):
            assert admin.get(f"/api/v1/{path}")["Cache-Control"] == "no-store"


def test_a_cache_that_is_away_stops_no_write_and_is_logged(admin, settings, caplog):
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}}
    make_model("m")
    with caplog.at_level(logging.WARNING, "quotas.api.throttles"):
        assert admin.post("/api/v1/models/m/wake").status_code == 202
    assert "not counted" in caplog.text


NONSENSE = [
    b"",
    b"{",
    b"null",
    b"true",
    b"[]",
    b"[[1]]",
    b'"text"',
    b"12",
    b"NaN",
    b"-Infinity",
    b"1e9999",
    b"9" * 5000,
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"\xff\xfe",
    b'{"name": "\\ud800"}',
    b'{"name": "\\u0000", "labels": {"a": "\\u0000"}}',
    b'{"name": 1, "name": 2}',
    b'{"name": {"a": [1]}, "source": [], "reason": {}, "schedulable": "maybe", "models": [], "replicas": 1, "parents": 3}',
    b'{"name": null, "source": null, "reason": null, "schedulable": null, "models": null, "labels": [], "pool": {}}',
    json.dumps({"format": "llmgw.snapshot/1", "at": 1, "nodes": 3, "models": [[]], "settings": None}).encode(),
    json.dumps(
        {"source": "g", "replicas": {"r": 1e300, "s": True}, "models": {"m": {"last_arrival_seconds_ago": 1e308}}}
    ).encode(),
    json.dumps({"source": "g", "models": {"m": {"last_arrival_at": "0001-01-01T00:00:00+14:00"}}}).encode(),
    json.dumps({"name": "n", "pool": "p", "priority": 10**30, "resources": {"gpu": 1.5}, "served_names": [[]]}).encode(),
    json.dumps({"model": {}, "profile": [], "evidence": [], "tokens_per_second": "1e400", "max_concurrency": -1}).encode(),
    json.dumps({"measured_at": "9999-12-31T23:59:59-14:00", "note": "x", "tokens_per_second": 1e308}).encode(),
]
LISTS = ["scopes", "quotas", "pools", "nodes", "models", "profiles", "measurements", "slos"]
VERBS = ["plan", "load", "models/m/wake", "models/m/pause", "nodes/n/cordon"]


@pytest.mark.parametrize("path", [*LISTS, *VERBS])
def test_nonsense_is_never_a_server_error(admin, path):
    make_node("n", pool=make_pool("p"))
    make_model("m")
    for body in NONSENSE:
        answer = post(admin, path, body)
        # 503: a good push that finds no Redis
        assert answer.status_code < 500 or (path, answer.status_code) == ("load", 503), (body[:60], answer.content)
        if answer.status_code >= 400:
            error_of(answer, answer.status_code)


@pytest.mark.parametrize("kind", LISTS)
def test_nonsense_in_an_edit_is_never_a_server_error(admin, kind):
    profile = make_profile(make_model("m", pool=make_pool("m")))
    make_node("m", pool=profile.model.pool)
    for path, body in {"scopes": {"name": "m"}, "slos": {"name": "m"}}.items():
        assert admin.post(f"/api/v1/{path}", body, format="json").status_code == 201
    quota = {"scope": "m", "pool": "m", "target": "gpu", "limit": 1}
    measurement = {"model": "m", "profile": profile.name, "max_concurrency": 1, "tokens_per_second": 1}
    made = {
        "quotas": admin.post("/api/v1/quotas", quota, format="json").json()["id"],
        "measurements": admin.post("/api/v1/measurements", measurement, format="json").json()["id"],
        "profiles": profile.pk,
    }
    for body in NONSENSE:
        for method in ("PUT", "PATCH"):
            path = f"/api/v1/{kind}/{made.get(kind, 'm')}"
            answer = admin.generic(method, path, body, content_type="application/json", headers={"If-Match": "*"})
            assert answer.status_code < 500, (method, body[:60], answer.content)


class TestPlan:
    def test_a_snapshot_is_answered_with_its_plan(self, admin):
        body = {
            "format": "llmgw.snapshot/1",
            "at": "2026-11-30T12:00:00Z",
            "nodes": [{"name": "n1", "resources": {"gpu/h100": 8}}],
            "models": [{"name": "chat"}],
            "profiles": [{"model": "chat", "name": "x", "resource": "gpu/h100", "units": 2}],
            "measurements": [{"model": "chat", "profile": "x", "max_concurrency": 8, "tokens_per_second": 0.1}],
            "replicas": [],
        }
        answer = post(admin, "plan", json.dumps(body))
        assert answer.status_code == 200, answer.content
        plan = answer.json()
        assert plan["format"] == "llmgw.plan/1"
        assert [(action["op"], action["model"], action["nodes"]) for action in plan["actions"]] == [("start", "chat", ["n1"])]

    def test_an_invalid_snapshot_is_422_with_each_fault(self, admin):
        body = {
            "format": "llmgw.snapshot/1",
            "at": "2026-11-30T12:00:00Z",
            "models": [{"name": "a", "min_replicas": 4, "max_replicas": 2}, {"name": "b", "typo": 1}],
        }
        error = error_of(post(admin, "plan", json.dumps(body)), 422)
        assert error["code"] == "invalid_document"
        assert (
            {fault["path"] for fault in error["faults"]} == {"models[0].max_replicas", "models[1].typo"} == set(error["fields"])
        )

    def test_text_that_is_no_json_is_a_fault_of_the_whole(self, admin):
        assert set(error_of(post(admin, "plan", b"{"), 422)["fields"]) == {"$"}


class TestSchema:
    def test_it_is_valid_and_for_those_signed_in(self, admin):
        answer = admin.get("/api/v1/schema/?format=json")
        assert answer.status_code == 200
        schema = json.loads(answer.content)
        assert schema["openapi"].startswith("3.1")
        for path in ("plan", "load", "models/{name}/pause", "nodes/{name}/cordon"):
            content = schema["paths"][f"/api/v1/{path}"]["post"]["requestBody"]["content"]["application/json"]
            assert content["examples"], path

    def test_the_page_of_the_docs_has_no_script_of_its_own_in_it(self, client):
        client.force_login(User.objects.create(username="ada"))
        page = client.get("/api/v1/docs/")
        assert page.status_code == 200
        text = page.content.decode()
        assert "swagger-ui" in text
        assert "//cdn" not in text
        assert all(tag.split(">", 1)[1].startswith("</script>") for tag in text.split("<script")[1:])
        script = client.get("/api/v1/docs/?script=")
        assert script["Content-Type"].startswith("application/javascript")
