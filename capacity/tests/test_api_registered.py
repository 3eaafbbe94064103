"""Registering running engines by the API: the same rules and words as the command."""

from __future__ import annotations

import json

import pytest

from capacity.models import Replica
from capacity.services import endpoints
from capacity.sources.look import Look
from capacity.tests.api_people import member, person
from capacity.tests.factories import make_model, make_node, make_pool, make_profile, make_scope

pytestmark = pytest.mark.django_db
PATH = "/api/v1/endpoints/registered"


@pytest.fixture(autouse=True)
def seen(monkeypatch):
    said = {"silence": "", "in_flight": 3, "unread": "", "serves": ("chat",)}
    monkeypatch.setattr(endpoints, "look", lambda url, allowed: Look(**said))


@pytest.fixture
def operator():
    return person("op", is_operator=True)


@pytest.fixture
def chat():
    pool = make_pool("p")
    make_node("n1", pool=pool)
    return make_profile(make_model("chat", pool=pool, scope=make_scope("acme")), "small")


def body(**fields) -> dict[str, object]:
    return {
        "url": "http://127.0.0.1:9",
        "model": "chat",
        "profile": "small",
        "nodes": ["n1"],
        "reason": "ran before",
        "name": "e1",
        **fields,
    }


def post(client, path=PATH, **fields):
    return client.post(path, json.dumps(body(**fields)), content_type="application/json")


def test_one_is_registered_listed_and_forgotten(operator, chat):
    made = post(operator)
    assert made.status_code == 201
    expected = {"name": "e1", "pool": "p", "model": "chat", "profile": "small", "units": 1, "state": "ready", "devices": []}
    assert expected.items() <= made.json().items()
    assert made.json()["warnings"] == []
    assert [row["name"] for row in operator.get(PATH).json()["results"]] == ["e1"]
    assert operator.get("/api/v1/replicas/e1").json()["is_registered"] is True
    found = operator.get(f"{PATH}/e1")
    assert operator.delete(f"{PATH}/e1?reason=moved").status_code == 428
    assert operator.delete(f"{PATH}/e1", headers={"if-match": found["ETag"]}).status_code == 400  # why?
    assert operator.delete(f"{PATH}/e1?reason=moved", headers={"if-match": found["ETag"]}).status_code == 204
    assert operator.get(f"{PATH}/e1").status_code == 404
    assert Replica.objects.get().history.first().history_user == operator.user


def test_the_tag_holds_while_its_state_changes(operator, chat):
    tag = post(operator)["ETag"]
    Replica.objects.update(state="unready")
    assert operator.get(f"{PATH}/e1")["ETag"] == tag


def test_a_preview_says_what_is_there_and_writes_nothing(operator, chat):
    answer = post(operator, f"{PATH}/preview", model="chat")
    assert answer.json() == {"silence": "", "in_flight": 3, "unread": "", "serves": ["chat"], "warnings": []}
    assert not Replica.objects.exists()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"url": "http://169.254.169.254"}, "url"),
        ({"url": "http://a:b@127.0.0.1"}, "url"),
        ({"model": "nobody"}, "model"),
        ({"profile": "none"}, "profile"),
        ({"nodes": ["nowhere"]}, "nodes"),
        ({"nodes": "n1"}, "nodes"),
        ({"devices": ["a", "b"]}, "devices"),
        ({"reason": ""}, "reason"),
        ({"state": "gone"}, "state"),
        ({"is_registered": False}, "is_registered"),
    ],
)
@pytest.mark.parametrize("path", [PATH, f"{PATH}/preview"])
def test_bad_input_is_refused_at_its_field_and_changes_nothing(operator, chat, path, fields, field):
    if path != PATH and field == "reason":
        return
    answer = post(operator, path, **fields)
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, [field])
    assert not Replica.objects.exists()


def test_only_operators_register_and_others_see_their_own(operator, chat):
    post(operator)
    scope = chat.model.scope
    own, foreign = member("own", scope), member("foreign", make_scope("other"))
    for client in (own, foreign):
        assert post(client, url="http://127.0.0.1:10", name="e2").status_code == 403
        assert post(client, f"{PATH}/preview", url="http://127.0.0.1:10").status_code == 403
    assert own.get(f"{PATH}/e1").status_code == 200
    assert own.delete(f"{PATH}/e1?reason=r", headers={"if-match": "*"}).status_code == 403
    assert foreign.get(f"{PATH}/e1").status_code == 404
    assert foreign.get(PATH).json()["count"] == 0
    assert Replica.objects.get().gone_at is None


def test_what_was_started_from_here_is_not_among_them(operator, chat):
    Replica.objects.create(name="r1", pool=chat.model.pool, model=chat.model, profile=chat, state="ready")
    assert operator.get(f"{PATH}/r1").status_code == 404
