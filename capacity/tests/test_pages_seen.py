"""Who sees what: strangers nothing, members their scopes, and a foreign name stands on no page."""

from __future__ import annotations

import pytest
from django.urls import reverse

from capacity.tests.factories import make_pool, make_scope
from capacity.tests.pages import make_action, make_fleet, make_person
from quotas.models import CapacityQuota

LISTS = ("now", "models", "tenants", "measurements", "decisions", "tokens")

pytestmark = pytest.mark.django_db


def detail_urls(fleet):
    return [
        reverse("model", args=[fleet.model.name]),
        reverse("model_chart", args=[fleet.model.name]),
        reverse("model", args=[fleet.model.name]) + "?format=csv",
        reverse("replica", args=[fleet.replicas[0].name]),
        reverse("decision", args=[fleet.decision.pk]),
    ]


@pytest.fixture
def two_scopes():
    """Two tenants on one pool, and a person of the first."""
    pool = make_pool("both-use-it")
    ours, theirs = make_scope("ours"), make_scope("theirs-scope")
    fleets = make_fleet("our-model", pool=pool, scope=ours), make_fleet("theirs-model", pool=pool, scope=theirs)
    for fleet in fleets:
        make_action(fleet.decision, fleet.replicas[0])
        CapacityQuota.objects.create(scope=fleet.model.scope, pool=pool, target="sim", limit=8)
    return make_person("alice", ours), *fleets


@pytest.mark.parametrize("name", [*LISTS, "nodes"])
def test_a_stranger_is_sent_to_the_login(client, name):
    assert client.get(reverse(name))["Location"].startswith(reverse("login"))


@pytest.mark.parametrize("name", LISTS)
def test_a_list_names_nothing_foreign(client, two_scopes, name):
    alice, _, _ = two_scopes
    client.force_login(alice)
    page = client.get(reverse(name))
    assert page.status_code == 200
    assert b"theirs" not in page.content


def test_ones_own_things_are_there(client, two_scopes):
    alice, ours, _ = two_scopes
    client.force_login(alice)
    assert all(
        "our-model" in client.get(reverse(name)).content.decode() for name in ("now", "models", "measurements", "decisions")
    )
    assert [client.get(url).status_code for url in detail_urls(ours)] == [200] * 5


def test_foreign_details_are_not_found(client, two_scopes):
    alice, _, theirs = two_scopes
    client.force_login(alice)
    assert [client.get(url).status_code for url in detail_urls(theirs)] == [404] * 5


def test_an_operator_sees_both(client, two_scopes):
    client.force_login(make_person("oscar", is_operator=True))
    assert all(client.get(url).status_code == 200 for fleet in two_scopes[1:] for url in detail_urls(fleet))


def test_a_search_for_a_foreign_name_finds_nothing(client, two_scopes):
    alice, _, theirs = two_scopes
    client.force_login(alice)
    for query in (theirs.model.name, theirs.replicas[0].name):
        assert "Nothing matches" in client.get(reverse("models"), {"q": query}).content.decode()


def test_a_foreign_problem_of_a_pass_is_told_to_operators_alone(client, two_scopes):
    alice, ours, theirs = two_scopes
    newest = theirs.pool.passes.latest("at")
    newest.problems = [
        {"code": "hotspot", "subject": f"model:{fleet.model.name}", "detail": "is hot"} for fleet in (ours, theirs)
    ]
    newest.save()
    client.force_login(alice)
    assert client.get(reverse("now")).content.decode().count("is hot") == 1
    client.force_login(make_person("oscar", is_operator=True))
    assert client.get(reverse("now")).content.decode().count("is hot") == 2


def test_hosts_are_for_those_who_run_them(client, two_scopes):
    alice, _, _ = two_scopes
    client.force_login(alice)
    assert client.get(reverse("nodes")).status_code == 404
    assert reverse("nodes") not in client.get(reverse("now")).content.decode()
    client.force_login(make_person("oscar", is_operator=True))
    assert "node of our-model" in client.get(reverse("nodes")).content.decode()
