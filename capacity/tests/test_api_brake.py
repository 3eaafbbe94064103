"""A pool's brake by the API: who may, what is shown, and that only a list that was read is released."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from capacity.models import Brake
from capacity.tests.api_people import member, person
from capacity.tests.factories import make_pool, make_scope
from capacity.tests.fleet import Fleet

pytestmark = pytest.mark.django_db
URL = "/api/v1/pools/p/brake"
PULL = {"on": True, "reason": "network work"}
RELEASE = {"on": False, "reason": "done"}


@pytest.fixture
def olga():
    return person("olga", is_operator=True)


def post(client, body, tag=None, url=URL):
    return client.post(url, body, format="json", headers={"If-Match": tag} if tag else {})


def test_an_operator_pulls_it_reads_what_it_withholds_and_releases_that(olga):
    fleet = Fleet(units=40, min_replicas=3)
    pulled = post(olga, PULL)
    assert (pulled.status_code, pulled.json()["on"], pulled.json()["actor"]) == (200, True, "olga")
    fleet.a_pass()
    shown = olga.get(URL)
    body = shown.json()
    assert [(row["op"], row["model"], row["rule"]) for row in body["withheld"]] == [("start", "chat", "manual")] * 3
    assert body["withheld"][0]["since"].endswith("Z")
    assert body["starts"] == {"counted": 0, "allowed": 8}
    assert shown["ETag"] == f'"{body["version"]}"'
    released = post(olga, RELEASE, shown["ETag"]).json()
    assert (released["on"], released["released"]["starts"]) == (False, {"chat": 3})


def test_a_release_without_the_list_is_428_and_with_another_412_and_changes_nothing(olga):
    fleet = Fleet(units=40, min_replicas=3)
    seen = post(olga, PULL)["ETag"]
    fleet.a_pass()
    assert post(olga, RELEASE).status_code == 428
    stale = post(olga, RELEASE, seen)
    assert stale.status_code == 412
    assert len(stale.json()["error"]["current"]["withheld"]) == 3
    assert Brake.objects.get().is_on


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"on": True}, "reason"),
        ({"on": True, "reason": "  "}, "reason"),
        ({"reason": "x"}, "on"),
        ({"on": True, "reason": "x", "until": "soon"}, "until"),
        ({"on": True, "reason": "x", "until": "2020-01-01T00:00:00Z"}, "until"),
        ({"on": False, "reason": "x", "until": "2120-01-01T00:00:00Z"}, "until"),
        ({"on": True, "reason": "x" * 101}, "reason"),
        ({"on": True, "reason": "x", "off": 1}, "off"),
        ({"on": "yes", "reason": "x"}, "on"),
        ({"on": 1, "reason": "x"}, "on"),
        ({"on": True, "reason": 3}, "reason"),
    ],
)
def test_a_bad_body_is_400_at_its_field(olga, body, field):
    Fleet()
    answer = post(olga, body, "*")
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, [field])
    assert not Brake.objects.get().is_on


def test_a_viewer_may_not_and_a_stranger_learns_nothing():
    scope = make_scope("acme")
    Fleet(scope=scope)
    for client, code in ((member("vera", scope), 403), (person("sam"), 404)):
        assert client.get(URL).status_code == code
        assert post(client, PULL).status_code == code
    assert not Brake.objects.get().is_on


@pytest.mark.parametrize("name", ["a/b", "x/brake", "50%", "🐙"])
def test_pools_of_any_name_have_their_own(olga, name):
    make_pool(name)
    url = f"/api/v1/pools/{quote(name)}"
    assert olga.get(url).json()["name"] == name
    assert olga.get(f"{url}/brake").json()["pool"] == name
    assert post(olga, PULL, url=f"{url}/brake").json()["on"]
    assert olga.patch(url, {"brake_stops": 4}, format="json", headers={"If-Match": "*"}).status_code == 200


def test_no_such_pool_is_404(olga):
    assert olga.get("/api/v1/pools/none/brake").status_code == 404
    assert olga.get("/api/v1/pools/a%00b/brake").status_code == 404


def test_a_brake_that_is_on_takes_another_end_from_who_has_read_it_alone(olga):
    Fleet()
    seen = post(olga, PULL)["ETag"]
    assert post(olga, {**PULL, "reason": "mine"}).status_code == 428
    stale = post(olga, {**PULL, "reason": "mine"}, '"other"')
    assert (stale.status_code, stale.json()["error"]["current"]["reason"]) == (412, "network work")
    assert Brake.objects.get().reason == "network work"
    assert post(olga, {**PULL, "reason": "longer"}, seen).json()["reason"] == "longer"
