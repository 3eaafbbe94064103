"""Unknown is not 0: pages hatch what is not known, say the part that is, and call no replica of a silent host ready."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from capacity.models import Sample
from capacity.tests.factories import make_node
from capacity.tests.pages import make_fleet, make_person
from capacity.views.demand import asked

pytestmark = pytest.mark.django_db


@pytest.fixture
def get(client):
    client.force_login(make_person("root", is_superuser=True, is_staff=True))
    return lambda name, *args: client.get(reverse(name, args=args))


@pytest.mark.parametrize(
    ("loads", "word"), [((None, None), "unknown"), ((7, None), "unknown, at least 7"), ((None, 0), "unknown")]
)
@pytest.mark.parametrize("page", ["now", "models"])
def test_a_bar_is_hatched_while_a_ready_replica_has_no_reading(get, page, loads, word):
    make_fleet(loads=loads)
    answer = get(page)
    (row,) = answer.context["rows"]
    assert (row.load_percent, row.load_word, row.headroom) == (None, word, None)
    assert f"</svg> <span>{word}</span>" in answer.content.decode()


def test_a_demand_without_a_bound_is_unknown(get):
    make_fleet().model.samples.update(demand_high=None)
    (row,) = get("models").context["rows"]
    assert (row.load_percent, row.load_word) == (None, "unknown, at least 10")


def test_the_first_sentence_does_not_say_0_of_what_is_unknown(get):
    fleet = make_fleet(loads=(None, None))
    html = get("model", fleet.model.name).content.decode()
    assert "An unknown number of requests in flight on <b>2</b> ready replicas that were measured to serve <b>20</b>." in html


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"demand_low": 10, "held_requests": 10}, "10 requests held at the gateway and no replica is ready"),
        ({"demand_low": 0, "held_requests": 0}, "0 requests in flight and no replica is ready"),
        ({"held_requests": None}, "an unknown number of requests held at the gateway and no replica is ready"),
        (
            {"demand_low": 9, "held_requests": 2, "ready": 1, "capacity_ready": 5},
            "7 requests in flight on 1 ready replica that was measured to serve 5; 2 more are held at the gateway",
        ),
        (
            {"demand_low": 1, "ready": 2, "held_requests": 0},
            "1 request in flight on 2 ready replicas without a measured capacity",
        ),
        (
            {"demand_low": 2, "held_requests": 2, "ready": 1, "capacity_ready": 1},
            "0 requests in flight on 1 ready replica that was measured to serve 1; 2 are held at the gateway",
        ),
        (
            {"demand_low": 7, "ready": 3, "capacity_ready": 24, "demand_high": None},
            "at least 7 requests in flight on 3 ready replicas that were measured to serve 24",
        ),
    ],
)
def test_what_is_asked_is_told_by_the_numbers_there_are(fields, text):
    assert asked(Sample(**{"demand_high": 0, **fields})) == text


def test_requests_that_wait_without_a_ready_replica_are_in_flight_on_none(get):
    fleet = make_fleet(loads=())
    fleet.model.samples.update(demand_low=10, demand_high=10, held_requests=10, capacity_ready=0)
    texts = [item.text for item in get("now").context["frame"].attention if item.label == "over capacity"]
    assert texts == ["has 10 requests held at the gateway and no replica is ready."]


@pytest.mark.parametrize(("seconds", "word"), [(48, "silent"), (4000, "lost")])
def test_a_replica_on_a_host_that_is_not_heard_is_not_called_ready(get, seconds, word):
    fleet = make_fleet()
    make_node("n1", pool=fleet.pool, reported_at=timezone.now() - timedelta(seconds=seconds))
    name = fleet.replicas[0].name
    for page in (get("node", "n1"), get("model", fleet.model.name), get("replica", name)):
        html = page.content.decode()
        assert f"</i> {word}, was ready</span>" in html
        assert "</i> ready</span>" not in html


def test_a_silent_host_has_no_free_units(get):
    fleet = make_fleet()
    make_node("n1", pool=fleet.pool, reported_at=timezone.now() - timedelta(seconds=48))
    html = get("node", "n1").content.decode()
    assert "<b>8</b> sim out of use" in html and "sim free" not in html


def test_a_replica_on_a_host_that_reports_is_ready(get):
    fleet = make_fleet()
    make_node("n1", pool=fleet.pool, reported_at=timezone.now())
    assert "</i> ready</span>" in get("model", fleet.model.name).content.decode()
