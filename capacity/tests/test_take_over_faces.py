"""The take-over's page, call and command: the same words, numbers first, and operators alone."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from capacity import wiring
from capacity.exporter import FleetCollector
from capacity.models import Lease
from capacity.tests.api_people import client_of
from capacity.tests.factories import make_pool, make_scope
from capacity.tests.fleet import INSTALLATION, Fleet
from capacity.tests.pages import make_person

pytestmark = pytest.mark.django_db


@pytest.fixture
def copied(monkeypatch):
    """Rows that installation “there” wrote, read by this one."""
    fleet = Fleet(min_replicas=2)
    fleet.a_pass(fleet.make_deps(installation="there"))
    fleet.passes(1)
    monkeypatch.setattr("capacity.views.take_over.deps", lambda: fleet.deps)
    monkeypatch.setattr("capacity.api.verbs.deps", lambda: fleet.deps)
    monkeypatch.setattr("capacity.management.commands.take_over.deps", lambda: fleet.deps)
    return fleet


def operator():
    return make_person("olga", is_operator=True, is_staff=True)


def command(**options):
    out = StringIO()
    call_command("take_over", stdout=out, stderr=out, **options)
    return out.getvalue()


def test_every_page_shows_that_a_pool_only_advises_and_now_says_why(client, copied):
    client.force_login(operator())
    for name in ("now", "models", "nodes", "decisions"):
        assert "p only advises: take over" in client.get(reverse(name)).content.decode()
    html = client.get(reverse("now")).content.decode()
    assert "written by installation there, and this is here" in html
    assert "it obeys installation there" in html


def test_the_page_says_the_numbers_first_and_acts_with_a_reason(client, copied):
    client.force_login(operator())
    url = reverse("take_over", args=["p"])
    html = client.get(url).content.decode()
    assert "2 replicas run and are kept as they are" in html
    assert "1 host reported, 1 obeying another installation" in html
    assert client.post(url, {"reason": ""}).status_code == 400
    assert Lease.objects.get().installation == "there"
    assert client.post(url, {"reason": "the first is gone"})["Location"] == "/"
    assert Lease.objects.get().installation == INSTALLATION
    assert "needs no take-over" in client.get(url).content.decode()
    assert copied.passes(1)[0].outcome == "done"
    assert "only advises" not in client.get(reverse("now")).content.decode()


def test_those_who_are_no_operators_may_not(client, copied):
    scope = make_scope("acme")
    copied.model.scope = scope
    copied.model.save()
    alice = make_person("alice", scope)
    client.force_login(alice)
    assert client.get(reverse("take_over", args=["p"])).status_code == 403
    assert client.post(reverse("take_over", args=["p"]), {"reason": "mine"}).status_code == 403
    answer = client_of(alice).post("/api/v1/pools/p/take-over", {"reason": "mine"}, format="json")
    assert answer.status_code == 403
    assert client_of(make_person("bob")).post("/api/v1/pools/p/take-over", {"reason": "x"}, format="json").status_code == 404
    assert Lease.objects.get().installation == "there"
    html = client.get(reverse("now")).content.decode()
    assert "p only advises" in html
    assert "installation there" not in html


def test_the_call_looks_first_and_then_does(copied):
    olga = client_of(operator())
    look = olga.post("/api/v1/pools/p/take-over", {"reason": "look", "preview": True}, format="json").json()
    assert (look["preview"], look["running"], look["hosts_of_others"], look["installation_before"]) == (True, 2, 1, "there")
    assert Lease.objects.get().installation == "there"
    done = olga.post("/api/v1/pools/p/take-over", {"reason": "the first is gone"}, format="json").json()
    assert {**done, "preview": True} == look
    assert Lease.objects.get().generation == done["generation"]
    again = olga.post("/api/v1/pools/p/take-over", {"reason": "once more"}, format="json")
    assert (again.status_code, list(again.json()["error"]["fields"])) == (400, ["pool"])
    assert olga.post("/api/v1/pools/nope/take-over", {"reason": "x"}, format="json").status_code == 404
    assert olga.post("/api/v1/pools/p/take-over", {"preview": True}, format="json").status_code == 400


def test_the_pool_says_in_the_api_why_it_is_only_advised(copied):
    olga = client_of(operator())
    pool = olga.get("/api/v1/pools/p")
    assert "written by installation there" in pool.json()["take_over_needed"]
    olga.post("/api/v1/pools/p/take-over", {"reason": "the first is gone"}, format="json")
    after = olga.get("/api/v1/pools/p")
    assert after.json()["take_over_needed"] == ""
    assert after["ETag"] == pool["ETag"], "it is nobody's edit of the pool"


def test_the_page_says_who_took_over_last_and_why(client, copied):
    client.force_login(operator())
    url = reverse("take_over", args=["p"])
    assert "Last taken over" not in client.get(url).content.decode()
    client.post(url, {"reason": "the first is gone"})
    html = client.get(url).content.decode()
    assert "by olga, from generation 3 on: the first is gone" in html


def test_all_pools_are_not_said_to_be_ours_while_their_hosts_cannot_be_asked(copied):
    command(pool="p", reason="the first is gone")
    copied.fake.away = True
    with pytest.raises(CommandError, match="cannot be read"):
        command(every=True, reason="again")


def test_a_pool_may_be_named_like_the_call(copied):
    make_pool("p/take-over")
    assert client_of(operator()).get("/api/v1/pools/p/take-over").json()["name"] == "p/take-over"


def test_the_command_previews_does_and_says_no(copied):
    assert "1 host reported, 1 obeying another installation; generation 2 → 3" in command(pool="p", preview=True)
    assert Lease.objects.get().installation == "there"
    with pytest.raises(CommandError, match="Say why"):
        command(pool="p")
    with pytest.raises(CommandError, match="There is no pool"):
        command(pool="q", reason="x")
    told = json.loads(command(every=True, reason="the first is gone", as_json=True))
    assert (told["pool"], told["preview"], told["running"]) == ("p", False, 2)
    assert Lease.objects.get().installation == INSTALLATION
    assert "No pool needs a take-over." in command(every=True, reason="again")


def test_prometheus_is_told(copied):
    def value():
        found = {metric.name: metric for metric in FleetCollector(copied.fake.now(), 15).collect()}
        return found["llmgw_takeover_needed"].samples[0].value

    assert value() == 1
    command(pool="p", reason="the first is gone")
    assert value() == 0


def test_the_process_has_one_id_of_its_settings(settings):
    assert wiring.make_deps(None).installation == settings.INSTALLATION_ID == "tests"
