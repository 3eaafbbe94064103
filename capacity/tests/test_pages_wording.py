"""Sentences of pages that read well: no name twice, no praise of what is withheld, no verb for what did not happen."""

from __future__ import annotations

import pytest
from django.urls import reverse

from capacity.tests.pages import make_decision, make_fleet, make_person

pytestmark = pytest.mark.django_db


@pytest.fixture
def get(client):
    client.force_login(make_person("root", is_superuser=True, is_staff=True))
    return lambda name, *args: client.get(reverse(name, args=args))


@pytest.mark.parametrize(
    ("subject", "detail", "text"),
    [
        ("replica:code-4", "code-4: gateways 15, engine 3 in flight.", "gateways 15, engine 3 in flight."),
        ("model:code", "code-4: gateways 15, engine 3, code-5: gateways 9, engine 0 in flight.", None),
    ],
)
def test_a_problem_names_its_subject_once(get, subject, detail, text):
    make_fleet("code").pool.passes.update(problems=[{"code": "disagree", "subject": subject, "detail": detail}])
    (item,) = get("now").context["frame"].attention
    assert item.text == (text or detail)


def test_a_model_of_which_the_brake_withholds_something_is_not_well(get):
    fleet = make_fleet()
    limits = [{"kind": "brake", "withheld": 1, "rule": "stops"}]
    make_decision(fleet.model, at=fleet.at, seen_until=fleet.at, limited_by=limits)
    page = get("model", fleet.model.name)
    assert (page.context["health"].word, page.context["health"].level) == ("Withheld", "warn")


def test_edits_are_not_said_to_be_by_people(get):
    html = get("model", make_fleet().model.name).content.decode()
    assert "<h2>Edits</h2>" in html and "Changes by people" not in html
