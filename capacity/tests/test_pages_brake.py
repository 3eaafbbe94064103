"""The brake on pages: its own page with numbers first, the mark at the top of each page, and what Now asks of a person."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from capacity.models import Brake
from capacity.tests.factories import make_model, make_pool, make_scope
from capacity.tests.pages import HOSTILE, make_fleet, make_person

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga(client):
    person = make_person("olga", is_operator=True)
    client.force_login(person)
    return person


def url(name="p"):
    return reverse("pool_brake", args=[name])


def withhold(pool, *models, rule="stops", **fields):
    """What a pass would have written."""
    since = timezone.now() - timedelta(minutes=4)
    rows = [
        {
            "op": "drain",
            "model": model,
            "replica": f"{model}-1",
            "profile": "small",
            "nodes": [],
            "reason": "rest_under_threshold",
            "rule": rule,
            "also": "",
            "why": "More than the 2 stops that pass in 10 min.",
            "since": since.isoformat(),
            **fields,
        }
        for model in models
    ]
    Brake.objects.filter(pool=pool).update(withheld=rows, withheld_since=since)


def told(page):
    return [(item.label, item.subject, item.act) for item in page.context["frame"].attention]


def test_the_page_shows_the_numbers_and_what_is_withheld_first(client, olga):
    pool = make_pool("p")
    make_model("chat", pool=pool)
    withhold(pool, "chat")
    page = client.get(url())
    text = page.content.decode()
    assert page.status_code == 200
    assert "<b>1 stop</b> withheld since" in text
    assert "0 <span>of 2 that pass</span>" in text
    assert "More than the 2 stops that pass in 10 min." in text
    assert (
        text.index("0 <span>of 2 that pass") < text.index("chat-1") < text.index(">Release</button>") < text.index('name="until"')
    )
    assert f'name="version" value="{page.context["state"].version}"' in text


def test_it_is_pulled_and_released_with_a_reason(client, olga):
    pool = make_pool("p")
    pulled = client.post(url(), {"act": "pull", "until": "30m", "reason": "network work"}, follow=True)
    assert "the brake is on" in pulled.content.decode()
    row = Brake.objects.get(pool=pool)
    assert (row.is_on, row.actor, row.reason) == (True, "olga", "network work")
    assert timedelta(minutes=29) < row.until - timezone.now() < timedelta(minutes=31)
    version = client.get(url()).context["state"].version
    released = client.post(url(), {"act": "release", "version": version, "reason": "done"}, follow=True)
    assert "the brake is off" in released.content.decode()
    assert not Brake.objects.get(pool=pool).is_on
    assert [row.history_user for row in row.history.all()[:2]] == [olga, olga]


def test_a_brake_that_is_on_takes_another_end_from_who_was_shown_it(client, olga):
    pool = make_pool("p")
    client.post(url(), {"act": "pull", "reason": "network work"})
    page = client.post(url(), {"act": "pull", "reason": "mine", "until": "5m"})
    assert page.status_code == 409
    assert "pulled by olga: network work. Look at it" in page.content.decode()
    assert Brake.objects.get(pool=pool).reason == "network work"
    version = page.context["state"].version
    assert client.post(url(), {"act": "pull", "reason": "longer", "version": version}).status_code == 302
    assert Brake.objects.get(pool=pool).reason == "longer"


def test_another_list_than_the_one_that_was_shown_is_not_released(client, olga):
    pool = make_pool("p")
    withhold(pool, "chat")
    version = client.get(url()).context["state"].version
    withhold(pool, "chat", "code")
    page = client.post(url(), {"act": "release", "version": version, "reason": "fine"})
    text = page.content.decode()
    assert page.status_code == 409
    assert "has changed since you looked" in text
    assert "code-1" in text
    assert 'value="fine"' in text  # what was typed stays
    assert Brake.objects.get(pool=pool).released == {}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"act": "pull", "reason": ""}, "Say why"),
        ({"act": "pull", "reason": "x", "until": "soon"}, "is no time"),
        ({"act": "pull", "reason": "x", "until": "2020-01-01T00:00Z"}, "has passed"),
        ({"act": "pull", "reason": "x" * 101}, "at most 100"),
        ({"act": "release", "reason": "x", "version": ""}, "required"),
        ({"act": "other", "reason": "x"}, "Withhold everything"),
    ],
)
def test_what_makes_no_sense_is_said_and_changes_nothing(client, olga, body, sentence):
    make_pool("p")
    page = client.post(url(), body)
    assert page.status_code == 400
    assert sentence in page.content.decode()
    assert not Brake.objects.get().is_on


def test_viewers_may_not_and_others_learn_nothing(client):
    scope = make_scope("acme")
    make_model("chat", pool=make_pool("p"), scope=scope)
    for person, code in ((make_person("vera", scope), 403), (make_person("sam"), 404)):
        client.force_login(person)
        assert client.get(url()).status_code == code
        assert client.post(url(), {"act": "pull", "reason": "x"}).status_code == code
    assert not Brake.objects.get().is_on


@pytest.mark.parametrize("page", ["now", "models", "nodes", "tenants", "measurements", "decisions", "tokens"])
def test_every_page_says_that_it_is_on_and_what_is_withheld(client, olga, page):
    fleet = make_fleet("chat", pool=make_pool("p"))
    assert 'href="/pools/p/brake/"><i' not in client.get(reverse(page)).content.decode()
    withhold(fleet.pool, "chat")
    assert "Withheld · 1 stop" in client.get(reverse(page)).content.decode()
    Brake.objects.update(is_on=True)
    assert "Brake on · 1 stop" in client.get(reverse(page)).content.decode()
    Brake.objects.update(until=timezone.now() - timedelta(seconds=1), withheld=[])
    assert "Brake on" not in client.get(reverse(page)).content.decode()


def test_now_asks_for_a_look_at_each_rule_and_names_the_models(client, olga):
    fleet = make_fleet("chat", pool=make_pool("p"))
    withhold(fleet.pool, "chat", "code")
    page = client.get(reverse("now"))
    assert ("too many stops", "chat, code", "look and release →") in told(page)
    assert "2 stops withheld for 4 min. More than the 2 stops" in page.content.decode()
    Brake.objects.update(is_on=True, actor="olga", reason="network work.", changed_at=timezone.now() - timedelta(minutes=3))
    page = client.get(reverse("now"))
    assert ("brake on", "p", "look and release →") in told(page)
    assert "starts and stops nothing for 3 min, until it is released, pulled by olga: network work." in page.content.decode()


def test_a_viewer_is_told_of_his_own_models_alone(client):
    scope, pool = make_scope("acme"), make_pool("p")
    make_fleet("chat", pool=pool, scope=scope)
    make_model("secret", pool=pool)
    withhold(pool, "secret")
    client.force_login(make_person("vera", scope))
    assert "Withheld" not in client.get(reverse("now")).content.decode()
    withhold(pool, "chat", "secret")
    page = client.get(reverse("now"))
    assert ("too many stops", "chat", "decisions →") in told(page)
    assert "Withheld · 1 stop" in page.content.decode()
    assert "secret" not in page.content.decode()
    Brake.objects.update(is_on=True, actor="olga", reason="secret work")
    text = client.get(reverse("now")).content.decode()
    assert "Brake on" in text
    assert "secret" not in text


def test_a_page_that_was_drawn_before_the_brake_was_touched_is_drawn_again(client, olga):
    make_fleet("chat", pool=make_pool("p"))
    seen = client.get(reverse("now")).context["frame"].seen
    assert client.get(reverse("now"), {"seen": seen}).status_code == 204
    client.post(url(), {"act": "pull", "reason": "x"})
    assert client.get(reverse("now"), {"seen": seen}).status_code == 200


def test_names_are_text_and_not_markup(client, olga):
    pool = make_pool(HOSTILE)
    make_model(HOSTILE, pool=pool)
    withhold(pool, HOSTILE, replica=HOSTILE, why=HOSTILE)
    client.post(url(HOSTILE), {"act": "pull", "reason": HOSTILE})
    for page in (client.get(url(HOSTILE)), client.get(reverse("now"))):
        assert page.status_code == 200
        assert "<img" not in page.content.decode()


def test_of_thousands_the_first_are_shown_and_all_are_counted(client, olga):
    pool = make_pool("p")
    make_model("chat", pool=pool)
    withhold(pool, *["chat"] * 3000)
    page = client.get(url())
    text = page.content.decode()
    assert text.count('data-label="withheld by"') == 200
    assert "3000 stops" in text and "The first 200 of 3,000" in text and "manage.py brake --pool p --show" in text
