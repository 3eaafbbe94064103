"""Lists: filters, pages, and a number of queries that does not grow with the rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from knox.models import AuthToken

from capacity.models import LanguageModel, Replica
from capacity.tests.factories import make_measurement, make_pool, make_profile, make_scope
from capacity.tests.pages import make_action, make_decision, make_fleet, make_person, make_sample
from quotas.models import CapacityQuota

COUNTS = json.loads((Path(__file__).parent / "query_counts.json").read_text())

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(client):
    person = make_person("oscar", is_operator=True)
    client.force_login(person)
    return person


def fill(pool, count):
    for number in range(count):
        fleet = make_fleet(f"m{number}", pool=pool, scope=make_scope(f"s{number}"), loads=(9, 14, None))
        CapacityQuota.objects.create(scope=fleet.model.scope, pool=pool, target="sim", limit=9)
        make_profile(fleet.model)
        make_measurement(fleet.profile, status="stale")
        make_action(make_decision(fleet.model, outcome="add", count=1, reason="over_capacity"), fleet.replicas[0])
        make_decision(fleet.model, reason="no_room")


def grow(pool, count):
    """More models, and more of everything that hangs on the first one."""
    first = LanguageModel.objects.get(name="m0")
    profile = first.profiles.first()
    for number in range(count):
        make_fleet(f"more{number}", pool=pool, scope=make_scope(), loads=(3,) * 5)
        make_measurement(make_profile(first))
        replica = Replica.objects.create(name=f"also{number}", pool=pool, model=first, profile=profile, state="ready")
        make_action(make_decision(first, outcome="add", count=1, reason="over_capacity"), replica)
        make_sample(first, timezone.now(), [(replica, 4)], 10)


def url_of(page):
    names = {"model": ["m0"], "model_chart": ["m0"], "replica": ["m0/r0"], "node": ["node of m0"]}
    return reverse(page, args=names.get(page))


@pytest.mark.parametrize("page", sorted(COUNTS))
def test_a_page_asks_as_many_queries_for_many_rows_as_for_few(client, operator, page):
    pool = make_pool()
    fill(pool, 2)
    client.get(url_of(page))
    seen = []
    for more in (0, 9):
        grow(pool, more)
        with CaptureQueriesContext(connection) as asked:
            assert client.get(url_of(page)).status_code == 200
        seen.append(len(asked))
    assert seen == [COUNTS[page]] * 2


def test_decisions_are_filtered_by_each_field(client, operator):
    fleet, other = make_fleet("llama"), make_fleet("qwen")
    make_decision(fleet.model, reason="no_room")
    make_decision(other.model, outcome="add", count=1, reason="over_capacity")

    def shown(**query):
        page = client.get(reverse("decisions"), query).context["page"]
        return sorted((row.model.name, row.reason) for row in page)

    assert shown(could_not="1") == [("llama", "no_room")]
    assert shown(outcome="add") == [("qwen", "over_capacity")]
    assert shown(reason="no_room") == [("llama", "no_room")]
    assert {name for name, _ in shown(model="LLAM")} == {"llama"}
    assert shown(model="nobody") == []
    assert len(shown(reason="no such reason", outcome="fly")) == 4
    assert shown(to="1") == []
    assert len(shown(**{"from": "x" * 500})) == 4


def test_a_page_past_the_end_is_the_last_and_counts_what_the_filter_leaves(client, operator):
    fleet = make_fleet()
    for _ in range(60):
        make_decision(fleet.model, reason="no_room")
    page = client.get(reverse("decisions"), {"could_not": "1", "page": "99"}).context["page"]
    assert (page.number, page.paginator.count, len(page)) == (2, 60, 10)


def test_nothing_matches_is_not_nothing_yet(client, operator):
    assert "No pass has decided anything yet" in client.get(reverse("decisions")).content.decode()
    assert "Nothing matches" in client.get(reverse("decisions"), {"model": "x"}).content.decode()


def test_the_worst_evidence_is_first(client, operator):
    fleet = make_fleet("current-one")
    for name, status, concurrency in (("b-assumed", "assumed", 5), ("c-stale", "stale", 5), ("d-unable", "current", 0)):
        make_measurement(make_profile(fleet.model, name), status=status, max_concurrency=concurrency)
    make_profile(fleet.model, "a-none")
    rows = client.get(reverse("measurements")).context["rows"]
    assert [profile.name for profile, _ in rows] == ["a-none", "c-stale", "b-assumed", "d-unable", "sim1"]


def test_used_units_count_once_in_each_ancestor(client, operator):
    top = make_scope("top")
    left, right = make_scope("left", top), make_scope("right", top)
    fleet = make_fleet("m", scope=make_scope("leaf", left, right), loads=(1, 1, 1))
    rows = {row.scope.name: row for row in client.get(reverse("tenants")).context["rows"]}
    assert {name: row.used for name, row in rows.items()} == {name: [("sim", 3)] for name in ("top", "left", "right", "leaf")}
    assert rows["leaf"].parents == ["left", "right"]
    assert rows["leaf"].models == 1
    assert fleet.model.scope.name == "leaf"


def test_an_exact_name_jumps_to_its_page(client, operator):
    fleet = make_fleet("llama")
    for name, page in ((fleet.model.name, "model"), (fleet.replicas[1].name, "replica")):
        assert client.get(reverse("models"), {"q": name})["Location"] == reverse(page, args=[name])
    assert [row.model.name for row in client.get(reverse("models"), {"q": "LAM"}).context["rows"]] == ["llama"]


def test_free_units_are_those_of_hosts_that_may_take_more(client, operator):
    fleet = make_fleet(loads=(1, 1, 1))
    node = fleet.pool.nodes.get()
    fleet.model.replicas.update(nodes=[node.name])
    (units,) = client.get(reverse("nodes")).context["classes"]
    assert (units.offered, units.held, units.free, units.largest_free, units.out) == (8, 3, 5, 5, 0)
    fleet.pool.nodes.update(schedulable=False)
    (units,) = client.get(reverse("nodes")).context["classes"]
    assert (units.free, units.largest_free, units.out) == (0, 0, 8)


def test_a_token_is_shown_once_and_expires_within_a_year(client, operator):
    page = client.post(reverse("tokens"), {"days": "30"})
    secret = page.context["secret"]
    token = AuthToken.objects.get(user=operator)
    assert secret in page.content.decode()
    assert 29 <= (token.expiry - timezone.now()).days <= 30
    assert secret not in client.get(reverse("tokens")).content.decode()
    assert client.get("/api/v1/models", headers={"Authorization": f"Bearer {secret}"}).status_code != 401
    assert "no-store" in page["Cache-Control"]


@pytest.mark.parametrize("days", ["0", "367", "-1", "x", "", "9" * 40])
def test_a_token_of_another_age_is_refused(client, operator, days):
    assert client.post(reverse("tokens"), {"days": days}).status_code == 400
    assert not AuthToken.objects.exists()


def test_one_revokes_ones_own_tokens_and_no_others(client, operator):
    mine, _ = AuthToken.objects.create(user=operator)
    theirs, _ = AuthToken.objects.create(user=make_person("bob"))
    assert client.post(reverse("token_revoke"), {"digest": theirs.digest}).status_code == 404
    assert client.post(reverse("token_revoke"), {"digest": mine.digest})["Location"] == reverse("tokens")
    assert list(AuthToken.objects.all()) == [theirs]


def test_a_stranger_who_signs_in_with_a_printed_password_must_change_it(client):
    person = make_person("new", must_change_password=True)
    client.force_login(person)
    assert client.get(reverse("now"))["Location"] == reverse("password_change")
    form = client.get(reverse("password_change"))
    assert "Choose one that only you know" in form.content.decode()
    new = {"old_password": "a-long-password", "new_password1": "another-long-1", "new_password2": "another-long-1"}
    assert client.post(reverse("password_change"), new).status_code == 302
    assert client.get(reverse("now")).status_code == 200
