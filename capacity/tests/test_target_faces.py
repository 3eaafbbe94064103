"""A sizing by page, API and command on a live pool: one answer, and who may ask; prices, and what they make it cost."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from capacity.briefings import target as briefing
from capacity.models import LanguageModel, Price
from capacity.tests.api_people import member, person
from capacity.tests.factories import make_model, make_scope
from capacity.tests.fleet import Fleet
from capacity.tests.pages import make_person
from quotas.models import CapacityQuota, Pool

pytestmark = pytest.mark.django_db
PAGE = "/models/chat/target/"
API = "/api/v1/models/chat/target"


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setattr("capacity.tests.fleet.START", datetime.now(UTC))
    fleet = Fleet(min_replicas=0)
    monkeypatch.setattr(briefing, "deps", lambda: fleet.deps)
    return fleet


@pytest.fixture
def team(live: Fleet) -> Any:
    """The model belongs to a team below an organisation that has a limit."""
    org = make_scope("secret-org")
    found = make_scope("team", org)
    model = LanguageModel.objects.get(name="chat")
    LanguageModel.objects.filter(pk=model.pk).update(scope=found)
    CapacityQuota.objects.create(scope=org, pool=model.pool, target=model.profiles.get().resource, limit=0)
    live.deps.policies.expire()
    return found


def test_page_api_and_command_give_the_same_answer(live: Fleet, client: Any) -> None:
    api = person("olga", is_operator=True)
    found = api.get(API, {"in_flight": "25"}).json()
    assert (found["format"], found["asked"], found["verdict"]) == ("llmgw.target/1", {"in_flight": 25}, "fits")
    assert api.post(API, {"in_flight": 25}, format="json").json()["plan"] == found["plan"]
    assert found["inputs"]["quotas_read_at"].endswith("Z")
    out = StringIO()
    call_command("model_target", "chat", "--in-flight", "25", "--json", stdout=out)
    assert json.loads(out.getvalue())["plan"] == found["plan"]
    client.force_login(make_person("ole", is_operator=True))
    page = client.get(PAGE, {"in_flight": "25"}).content.decode()
    assert "Fits" in page
    assert "manage.py model_target chat --in-flight 25" in page
    assert found["plan"][0]["nodes"][0] in page


def test_the_command_ends_with_the_verdict(live: Fleet) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command("model_target", "chat", "--in-flight", "1000000", stdout=StringIO())
    assert ended.value.code == 2
    for words in (["gone", "--in-flight", "1"], ["chat"], ["chat", "--in-flight", "1", "--scope", "gone"]):
        with pytest.raises(CommandError):
            call_command("model_target", *words)


def test_a_wrong_question_is_one_sentence_everywhere(live: Fleet, client: Any) -> None:
    api = person("olga", is_operator=True)
    refused = api.get(API, {"in_flight": "x"})
    assert refused.status_code == 400
    assert list(refused.json()["error"]["fields"]) == ["in_flight"]
    assert api.get(API, {"colour": "red", "in_flight": "1"}).status_code == 400
    assert "2 times" in api.get(f"{API}?in_flight=3&in_flight=4").json()["error"]["fields"]["in_flight"][0]
    assert api.post(API, [1], format="json").status_code == 400
    client.force_login(make_person("ole", is_operator=True))
    page = client.get(PAGE, {"in_flight": "x"})
    assert page.status_code == 400
    assert "is not a number over 0" in page.content.decode()


def test_the_page_recomputes_a_part_and_keeps_a_short_address(live: Fleet, client: Any) -> None:
    client.force_login(make_person("ole", is_operator=True))
    assert "Nothing is asked yet" in client.get(PAGE).content.decode()
    query = {"by": "in_flight", "in_flight": "25", "tokens_per_second": "9", "hours": "", "room": "now", "spare": "1"}
    part = client.get(PAGE, query, headers={"HX-Request": "true"})
    assert part["HX-Replace-Url"] == f"{PAGE}?in_flight=25&spare=1"
    assert 'id="question"' not in part.content.decode()
    wrong = client.get(PAGE, {"in_flight": "x"}, headers={"HX-Request": "true"})
    assert wrong.status_code == 200
    assert client.post(PAGE).status_code == 405


def test_a_model_that_is_named_like_the_page_has_its_own(live: Fleet, client: Any) -> None:
    make_model("chat/target", pool=Pool.objects.get())
    client.force_login(make_person("ole", is_operator=True))
    assert "<h1>chat/target</h1>" in client.get(PAGE).content.decode()
    assert person("olga", is_operator=True).get(API).json()["name"] == "chat/target"


def test_only_those_who_see_the_model_may_ask_and_of_foreign_scopes_the_limit_that_binds_is_told(team: Any, client: Any) -> None:
    stranger, viewer = member("eve", make_scope("elsewhere")), member("vera", team)
    assert stranger.get(API, {"in_flight": "25"}).status_code == 404
    found = viewer.get(API, {"in_flight": "25"})
    assert found.status_code == 200
    assert found.json()["verdict"] == "none"
    assert [(stop["scope"], stop["limit"]) for stop in found.json()["binding"]] == [("secret-org", 0)]
    assert found.json()["quota_path"] == []
    unknown, foreign = (viewer.get(API, {"in_flight": "25", "scope": scope}).json() for scope in ("gone", "secret-org"))
    assert [answer["error"]["fields"]["scope"][0][:19] for answer in (unknown, foreign)] == [
        "There is no scope g",
        "There is no scope s",
    ]
    client.force_login(viewer.user)
    page = client.get(PAGE, {"in_flight": "25"}).content.decode()
    assert "Does not fit" in page
    assert "secret-org" in page
    client.force_login(stranger.user)
    assert client.get(PAGE).status_code == 404


def price(api: Any, **fields: Any) -> Any:
    resource = LanguageModel.objects.get(name="chat").profiles.get().resource
    body = {"pool": Pool.objects.get().name, "resource": resource, "per_unit_hour": "2.5", "currency": "eur", **fields}
    return api.post("/api/v1/prices", body, format="json")


def test_the_newest_price_that_has_begun_says_what_it_costs(live: Fleet) -> None:
    api, now = person("olga", is_operator=True), datetime.now(UTC)
    assert api.get(API, {"in_flight": "25"}).json()["cost"] is None
    for days, amount in ((-20, "9"), (-10, "2.5"), (10, "99")):
        assert price(api, per_unit_hour=amount, since=(now + timedelta(days=days)).isoformat()).status_code == 201
    answer = api.get(API, {"in_flight": "25"}).json()
    units = sum(row["units"] for row in answer["plan"])
    assert answer["cost"]["currency"] == "EUR"
    assert answer["cost"]["added_per_hour"] == 2.5 * units
    assert answer["cost"]["per_million_output_tokens"] > 0


def test_prices_are_written_by_operators_and_seen_with_their_pool(live: Fleet, team: Any) -> None:
    api = person("olga", is_operator=True)
    made = price(api, since="2026-01-01T00:00:00Z")
    assert made.json()["currency"] == "EUR"
    assert list(price(api, since="2026-01-01T00:00:00Z").json()["error"]["fields"]) == ["since"]
    assert price(api, per_unit_hour="-1").status_code == 400
    other = price(api, resource="gpu/other", currency="USD")
    assert "in EUR, USD" in other.json()["warnings"][0]
    viewer, stranger = member("vera", team), member("eve", make_scope("elsewhere"))
    address = f"/api/v1/prices/{made.json()['id']}"
    assert viewer.get(address).status_code == 200
    assert price(viewer).status_code == 403
    assert stranger.get(address).status_code == 404
    assert stranger.get("/api/v1/prices").json()["results"] == []
    etag = api.get(address)["ETag"]
    assert api.patch(address, {"per_unit_hour": "3"}, format="json", headers={"If-Match": etag}).status_code == 200
    assert Price.objects.get(pk=made.json()["id"]).history.count() == 2
