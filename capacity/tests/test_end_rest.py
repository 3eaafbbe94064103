"""People see that removals rest, and why; operators end it."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.urls import reverse

from capacity.exporter import FleetCollector
from capacity.models import LanguageModel
from capacity.services import end_rest
from capacity.tests.api_people import member, person
from capacity.tests.factories import make_scope
from capacity.tests.fleet import Fleet
from capacity.tests.pages import make_person
from capacity.tests.test_probation_passes import Watched, slow_down
from quotas.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def rested(monkeypatch):
    """A model whose removals rest, by the clock of now."""
    from datetime import UTC, datetime

    from capacity.briefings import mode_facts

    monkeypatch.setattr("capacity.tests.fleet.START", datetime.now(UTC) - timedelta(minutes=5))
    fleet = Watched()
    fleet.until_removed()
    slow_down(fleet)
    monkeypatch.setattr(mode_facts, "deps", lambda: fleet.deps)
    return fleet


def test_pages_say_that_removals_rest_and_why(rested, client):
    client.force_login(make_person("olga", is_operator=True))
    page = client.get(reverse("model", args=["chat"])).content.decode()
    assert "Removals rest" in page
    assert "within 500 ms TTFT, target 95 %" in page
    assert "end the rest →" in page
    assert "removals rest" in client.get("/").content.decode()
    assert "It keeps at least <b>3</b> replicas" in client.get("/models/chat/mode/").content.decode()


def test_the_page_ends_it_with_a_reason(rested, client):
    client.force_login(make_person("olga", is_operator=True))
    url = reverse("model_end_rest", args=["chat"])
    refused = client.post(url, {"reason": " "})
    assert refused.status_code == 400
    assert "Say why removals may go on." in refused.content.decode()
    assert rested.stored.removals_rest_until is not None
    assert "Removals of chat may go on." in client.post(url, {"reason": "a slow disk"}, follow=True).content.decode()
    assert rested.stored.removals_rest_until is None
    assert rested.stored.history.first().history_change_reason == "a slow disk"
    assert client.post(url, {"reason": "again"}).status_code == 400
    assert client.get(url).status_code == 404


def test_once_it_is_ended_removals_go_on(rested):
    end_rest(rested.stored, actor=User.objects.create(username="alice"), reason="why", now=rested.fake.now())
    for _ in range(8):
        rested.serve(3, quick=5)
    assert len(rested.names("ready")) < 3


def test_others_than_operators_do_not_end_it(rested, client):
    scope = make_scope("acme")
    LanguageModel.objects.update(scope=scope)
    url, api = reverse("model_end_rest", args=["chat"]), "/api/v1/models/chat/end_rest"
    client.force_login(make_person("vera", scope))
    assert "end the rest" not in client.get(reverse("model", args=["chat"])).content.decode()
    assert client.post(url, {"reason": "x"}).status_code == 403
    client.force_login(make_person("sam", make_scope("other")))
    assert client.post(url, {"reason": "x"}).status_code == 404
    assert member("v2", scope).post(api, {"reason": "x"}, format="json").status_code == 403
    assert person("s2").post(api, {"reason": "x"}, format="json").status_code == 404
    assert rested.stored.removals_rest_until is not None


def test_the_api_shows_and_ends_it(rested):
    olga = person("olga", is_operator=True)
    shown = olga.get("/api/v1/models/chat").json()
    assert shown["removals_rest_until"].endswith("Z")
    assert shown["probation"]["result"] == "failed"
    assert shown["probation"]["attained"][0]["target_percent"] == 95
    assert "base" not in shown["probation"]
    assert olga.post("/api/v1/models/chat/end_rest", {}, format="json").status_code == 400
    done = olga.post("/api/v1/models/chat/end_rest", {"reason": "why"}, format="json")
    assert done.json() == {"model": "chat", "removals_rest_until": None}
    refused = olga.post("/api/v1/models/chat/end_rest", {"reason": "why"}, format="json")
    assert (refused.status_code, "No removals of chat rest." in refused.content.decode()) == (400, True)


def test_the_command_ends_it(rested):
    out = StringIO()
    with pytest.raises(CommandError, match="Say why"):
        call_command("end_rest", "chat", stdout=out)
    call_command("end_rest", "chat", "--reason", "why", stdout=out)
    assert out.getvalue() == "Removals of chat may go on.\n"
    with pytest.raises(CommandError, match=r"No removals of chat rest\."):
        call_command("end_rest", "chat", "--reason", "why", stdout=out)
    with pytest.raises(CommandError, match="There is no model"):
        call_command("end_rest", "nobody", "--reason", "why", stdout=out)


def test_nothing_rests_nothing_to_end():
    fleet = Fleet()
    with pytest.raises(ValidationError):
        end_rest(fleet.model, actor=None, reason="why", now=fleet.fake.now())


def test_it_is_a_metric(rested):
    def value(now):
        families = {family.name: family for family in FleetCollector(now, 15).collect()}
        return [sample.value for sample in families["llmgw_removals_rest"].samples]

    now = rested.lease.last_pass_at
    assert value(now) == [1]
    LanguageModel.objects.update(removals_rest_until=now)
    assert value(now) == [0]
