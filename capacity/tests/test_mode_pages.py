"""The mode of a model by page, API, command and admin: the same facts, the same refusals, the same people."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from capacity.briefings import mode_facts
from capacity.models import LanguageModel, Measurement
from capacity.tests.api_people import member, person
from capacity.tests.factories import make_model, make_pool, make_scope
from capacity.tests.fleet import Fleet, deps_without_redis
from capacity.tests.pages import make_person
from capacity.tests.rollups import remember

pytestmark = pytest.mark.django_db


@pytest.fixture
def live(monkeypatch):
    """A live pool as the pages see it."""
    monkeypatch.setattr("capacity.tests.fleet.START", datetime.now(UTC))
    fleet = Fleet(min_replicas=2, mode="advise")
    monkeypatch.setattr(mode_facts, "deps", lambda: fleet.deps)
    return fleet


@pytest.fixture
def operator(client):
    client.force_login(make_person("olga", is_operator=True))
    return client


PAGE = "/models/chat/mode/"


def test_the_page_shows_numbers_first_and_then_the_card(live, operator):
    remember(live.model, [2, 25, 2])
    page = operator.get(PAGE, {"mode": "auto"})
    text = page.content.decode()
    assert "<b>2</b> starts and <b>0</b> stops would be done" in text
    assert text.index("The next pass") < text.index("The last 14 days")
    assert "25 requests on" in text
    assert f"{reverse('model', args=['chat'])}?from=" in text
    assert "A reason is needed." in text


def test_the_page_refuses_without_a_reason_keeps_what_was_asked_and_takes_one(live, operator):
    refused = operator.post(PAGE, {"mode": "auto", "reason": ""})
    assert refused.status_code == 400
    assert "Give a reason to switch it to auto all the same." in refused.content.decode()
    assert LanguageModel.objects.get().mode == "advise"
    taken = operator.post(PAGE, {"mode": "auto", "reason": "trial <b>"}, follow=True)
    assert "chat is in mode auto: acts." in taken.content.decode()
    assert LanguageModel.objects.get().mode == "auto"


@pytest.mark.parametrize("mode", ["", "wild"])
def test_a_mode_that_is_none_changes_nothing(live, operator, mode):
    assert operator.post(PAGE, {"mode": mode, "reason": "why"}).status_code == 400
    assert LanguageModel.objects.get().mode == "advise"


def test_a_viewer_sees_the_card_and_no_plan_and_switches_nothing(live, client):
    scope = make_scope("acme")
    LanguageModel.objects.update(scope=scope)
    client.force_login(make_person("vera", scope))
    text = client.get(PAGE).content.decode()
    assert "The last 14 days" in text
    assert "The next pass" not in text
    assert '<form method="post" id="switch"' not in text
    assert client.post(PAGE, {"mode": "auto", "reason": "mine"}).status_code == 403
    client.force_login(make_person("sam", make_scope("other")))
    assert client.get(PAGE).status_code == client.post(PAGE, {"mode": "auto", "reason": "x"}).status_code == 404
    assert LanguageModel.objects.get().mode == "advise"


def test_a_model_named_like_the_page_keeps_its_own_page(live, operator):
    make_model("a/mode", pool=live.pool)
    assert "<h1>a/mode</h1>" in operator.get("/models/a/mode/").content.decode()
    assert operator.get("/models/a/mode/mode/").status_code == 200


def test_the_api_shows_switches_and_refuses_as_the_page_does(live):
    olga = person("olga", is_operator=True)
    url = "/api/v1/models/chat/mode"
    shown = olga.get(url, {"mode": "auto"}).json()
    assert (shown["mode"], shown["next_pass"]["starts"], shown["scorecard"]["covered_days"]) == ("advise", 2, 0.0)
    assert len(shown["reason_needed"]) == 2
    refused = olga.post(url, {"mode": "auto"}, format="json")
    assert refused.status_code == 400
    assert "Give a reason" in refused.json()["error"]["fields"]["mode"][0]
    assert olga.post(url, {"mode": "auto", "reason": "trial"}, format="json").json() == {"model": "chat", "mode": "auto"}
    assert olga.get(url, {"mode": "wild"}).status_code == 400
    assert olga.post(url, {"mode": "wild", "reason": "x"}, format="json").status_code == 400
    assert olga.post(url, {"mode": "auto", "speed": 3}, format="json").status_code == 400


def test_the_api_gives_a_viewer_the_card_alone_and_a_stranger_nothing(live):
    scope = make_scope("acme")
    LanguageModel.objects.update(scope=scope)
    url = "/api/v1/models/chat/mode"
    viewer, stranger = member("vera", scope), member("sam", make_scope("other"))
    assert viewer.get(url).json()["next_pass"] is None
    assert viewer.post(url, {"mode": "auto", "reason": "x"}, format="json").status_code == 403
    assert stranger.get(url).status_code == stranger.post(url, {"mode": "auto", "reason": "x"}, format="json").status_code == 404


@pytest.mark.parametrize("method", ["post", "patch"])
def test_the_catalogue_of_the_api_does_not_get_round_the_reason(method):
    olga = person("olga", is_operator=True)
    make_pool("p")
    if method == "post":
        answer = olga.post("/api/v1/models", {"name": "m", "pool": "p", "mode": "auto"}, format="json")
    else:
        make_model("m", mode="advise")
        etag = olga.get("/api/v1/models/m")["ETag"]
        answer = olga.patch("/api/v1/models/m", {"mode": "auto"}, format="json", headers={"If-Match": etag})
    assert answer.status_code == 400
    assert "Give a reason" in answer.json()["error"]["fields"]["mode"][0]


def test_the_admin_form_does_not_get_round_the_reason(client):
    from capacity.tests.admin_pages import form_data, page_of

    client.force_login(make_person("olga", is_operator=True, is_staff=True))
    model = make_model("m", mode="advise")
    data = form_data(client.get(page_of(model))) | {"mode": "auto"}
    assert "Give a reason" in str(client.post(page_of(model), data).context["adminform"].form.errors["mode"])
    assert client.post(page_of(model), data | {"reason": "trial"}).status_code == 302
    assert LanguageModel.objects.get().mode == "auto"


def command(*arguments):
    out = StringIO()
    call_command("model_mode", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_shows_and_switches(live):
    text = command("chat", "auto", "--preview")
    assert "The next pass in mode auto: 2 starts and 0 stops are done" in text
    assert json.loads(command("chat", "auto", "--preview", "--json"))["next_pass"]["starts"] == 2
    assert LanguageModel.objects.get().mode == "advise"
    assert command("chat", "auto", "--reason", "trial") == "chat is in mode auto: acts.\n"
    assert LanguageModel.objects.get().mode == "auto"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("chat", "auto"), "Say why"),
        (("chat", "auto", "--reason", "  "), "Say why"),
        (("nobody", "auto", "--reason", "x"), "There is no model “nobody”."),
        (("chat", "auto", "--reason", "x" * 101), "longer than 100 characters"),
        (("chat", "wild", "--reason", "x"), "invalid choice"),
    ],
)
def test_a_wrong_command_says_so_and_changes_nothing(arguments, sentence):
    make_model("chat", mode="advise")
    with pytest.raises(CommandError, match=sentence):
        command(*arguments)
    assert LanguageModel.objects.get().mode == "advise"
    assert not Measurement.objects.exists()


def test_the_page_also_stands_where_redis_does_not_answer(operator, monkeypatch):
    monkeypatch.setattr(mode_facts, "deps", deps_without_redis)
    make_model("chat", mode="advise")
    text = operator.get(PAGE, {"mode": "auto"}).content.decode()
    assert "<b>0</b> starts and <b>0</b> stops would be done" in text
    assert "Nothing is recorded yet." in text
