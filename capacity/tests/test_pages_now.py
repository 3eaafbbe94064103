"""Now: what needs a person as sentences, the first steps of an empty installation, and the example's end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from capacity.models import Node, Replica
from capacity.tests.factories import make_model, make_node, make_pool, make_profile
from capacity.tests.pages import make_decision, make_fleet, make_person
from capacity.views import example as example_view
from quotas.models import Pool

pytestmark = pytest.mark.django_db


@pytest.fixture
def now_page(client):
    client.force_login(make_person("root", is_superuser=True, is_staff=True))
    return lambda **query: client.get(reverse("now"), query)


def told(page):
    return {(item.label, item.subject) for item in page.context["frame"].attention}


def test_an_empty_installation_shows_the_four_steps_with_their_commands(now_page):
    html = now_page().content.decode()
    assert html.count("<li><b>") == 4
    assert "make node NAME=" in html
    assert "No pass yet" in html


def test_a_person_without_scopes_is_not_told_how_to_install(client):
    client.force_login(make_person("alice"))
    html = client.get(reverse("now")).content.decode()
    assert "You see no model yet" in html
    assert "make node" not in html


def test_nothing_to_do_is_said_in_words(now_page):
    make_fleet()
    page = now_page()
    assert told(page) == set()
    assert "All is well." in page.content.decode()


def test_a_model_over_its_capacity_is_named(now_page):
    make_fleet("busy", loads=(14, 9))
    assert ("over capacity", "busy") in told(now_page())


@pytest.mark.parametrize("reason", ["no_room", "at_limit", "at_max", "metrics_unknown", "inventory_unknown"])
def test_what_could_not_be_done_is_told_with_its_why(now_page, reason):
    fleet = make_fleet()
    make_decision(fleet.model, at=fleet.at, seen_until=fleet.at, reason=reason, why="Because of this.")
    page = now_page()
    assert {subject for _, subject in told(page)} == {fleet.model.name}
    assert "Because of this." in page.content.decode()


def test_a_mark_and_a_reason_link_to_what_they_mean(now_page):
    fleet = make_fleet("busy", loads=(14, 9))
    make_decision(fleet.model, at=fleet.at, seen_until=fleet.at, reason="no_room")
    html = now_page().content.decode()
    assert '<a class="tag bad" href="/help/runbook/#over_capacity"' in html
    assert '<a class="tag warn" href="/help/runbook/#no_room"' in html
    assert '<a class="explain" href="/help/runbook/#no_room"' in html


def test_what_could_not_be_done_an_hour_ago_is_no_news(now_page):
    fleet = make_fleet()
    then = fleet.at - timedelta(hours=1)
    make_decision(fleet.model, at=then, seen_until=then, reason="no_room")
    assert told(now_page()) == set()


@pytest.mark.parametrize(("status", "label"), [("stale", "outdated"), ("assumed", "assumed")])
def test_doubtful_evidence_in_use_is_told(now_page, status, label):
    fleet = make_fleet()
    fleet.profile.measurements.update(status=status)
    assert told(now_page()) == {(label, f"{fleet.model.name} · {fleet.profile.name}")}


def test_a_profile_in_use_without_a_measurement_is_told_and_an_unused_one_is_not(now_page):
    fleet = make_fleet()
    fleet.profile.measurements.all().delete()
    make_profile(fleet.model)
    assert told(now_page()) == {("unmeasured", f"{fleet.model.name} · {fleet.profile.name}")}


def test_a_silent_node_is_told_and_one_that_never_reported_is_not(now_page):
    fleet = make_fleet()
    make_node("typed-in", pool=fleet.pool, reported_at=None)
    Node.objects.filter(name__startswith="node of").update(reported_at=timezone.now() - timedelta(seconds=48))
    page = now_page()
    assert told(page) == {("silent", f"node of {fleet.model.name}")}
    assert page.context["frame"].counts == {"now": 1, "nodes": 1, "measurements": 0}


def test_a_late_pass_is_told_and_what_is_shown_is_grey(now_page):
    fleet = make_fleet()
    fleet.pool.passes.update(at=timezone.now() - timedelta(minutes=5))
    page = now_page()
    assert ("late", fleet.pool.name) in told(page)
    assert '<body class="late">' in page.content.decode()


def test_an_unreadable_view_is_told_with_its_error_and_age(now_page):
    fleet = make_fleet()
    read_at = (timezone.now() - timedelta(minutes=4)).isoformat()
    fleet.pool.passes.update(views={"quotas": {"read_at": read_at, "error": "database is locked"}})
    page = now_page()
    assert ("unreadable", "quotas") in told(page)
    assert "database is locked); the last good answer is 4 min old." in page.content.decode()


def test_the_most_loaded_model_is_first_and_an_unseen_one_last(now_page):
    pool = make_pool()
    make_fleet("calm", pool=pool, loads=(1,))
    make_fleet("busy", pool=pool, loads=(9,))
    make_model("unseen", pool=pool)
    assert [row.model.name for row in now_page().context["rows"]] == ["busy", "calm", "unseen"]


def test_an_unseen_model_shows_unknown_and_never_zero(now_page):
    make_model("unseen")
    row = now_page().context["rows"][0]
    assert row.load_percent is None
    assert row.load_word == "no pass yet"


def test_a_pool_is_chosen_in_the_address(now_page):
    first, second = make_fleet("one"), make_fleet("two")
    assert [row.model for row in now_page(pool=first.pool.name).context["rows"]] == [first.model]
    assert {row.model for row in now_page(pool="no such pool").context["rows"]} == {first.model, second.model}


def test_the_example_is_named_and_removed_in_one_click_by_operators(client, monkeypatch):
    removed = []
    monkeypatch.setattr(example_view.example, "remove", lambda actor, which: removed.append((actor, which.pool)))
    fleet = make_fleet()
    fleet.pool.is_example = True
    fleet.pool.save()
    client.force_login(make_person("alice"))
    assert client.post(reverse("example_remove")).status_code == 403
    operator = make_person("oscar", is_operator=True)
    client.force_login(operator)
    assert reverse("example_remove") in client.get(reverse("now")).content.decode()
    assert client.get(reverse("example_remove")).status_code == 405
    assert client.post(reverse("example_remove"))["Location"] == reverse("now")
    assert client.post(reverse("example_remove"), {"pool": "llama"})["Location"] == reverse("now")
    assert client.post(reverse("example_remove"), {"pool": "default"}).status_code == 404
    assert removed == [(operator, "example"), (operator, "llama")]


def test_an_example_with_an_engine_of_a_person_s_own_is_removed_on_a_second_word(client, monkeypatch):
    removed = []
    monkeypatch.setattr(example_view.example, "remove", lambda actor, which: removed.append(which.pool))
    fleet = make_fleet("chat", pool=make_pool("example"))
    Pool.objects.update(is_example=True)
    Replica.objects.filter(pk=fleet.replicas[0].pk).update(is_registered=True)
    client.force_login(make_person("oscar", is_operator=True))
    page = client.post(reverse("example_remove"), {"pool": "example"})
    assert (page.status_code, removed) == (200, [])
    assert "<b>1</b> running engine" in page.content.decode()
    assert client.post(reverse("example_remove"), {"pool": "example", "sure": "1"})["Location"] == reverse("now")
    assert removed == ["example"]


def test_a_poll_without_a_newer_pass_is_answered_with_nothing(client, now_page):
    fleet = make_fleet()
    seen = now_page().context["frame"].seen
    poll = {"headers": {"HX-Request": "true"}}
    assert client.get(reverse("now"), {"seen": seen}, **poll).status_code == 204
    fleet.pool.passes.create(pool=fleet.pool, at=timezone.now(), generation=1)
    parts = client.get(reverse("now"), {"seen": seen}, **poll)
    assert parts.status_code == 200
    html = parts.content.decode()
    assert "<html" not in html
    assert 'id="topbar" hx-swap-oob="true"' in html
    assert 'id="now" hx-swap-oob="true"' in html
    assert "no-store" in parts["Cache-Control"]
