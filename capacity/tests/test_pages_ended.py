"""A replica that ended by itself is seen afterwards: how it ended, with which last words, on the pages of model and replica."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from capacity.observation.endings import ending_words
from capacity.tests.factories import make_pool
from capacity.tests.pages import make_action, make_decision, make_fleet, make_person

pytestmark = pytest.mark.django_db

KILLED = "killed by signal 9 (SIGKILL)"


@pytest.fixture
def get(client):
    client.force_login(make_person("root", is_superuser=True, is_staff=True))
    return lambda name, *args: client.get(reverse(name, args=args))


def end(replica, *, ago=timedelta(minutes=3), message=KILLED):
    replica.state, replica.message = "gone", message
    replica.since = replica.gone_at = timezone.now() - ago
    replica.save()


@pytest.mark.parametrize(
    ("code", "words", "was_ready", "text"),
    [
        (-9, "", True, KILLED),
        (-9, "", False, KILLED),
        (1, "CUDA out of memory.", True, "exited with code 1, last words: CUDA out of memory."),
        (0, "", True, "exited with code 0"),
        (-250, "", True, "killed by signal 250"),
        (None, "", True, "ended, it is not known how"),
        (None, "bye", True, "ended, it is not known how, last words: bye"),
        (None, "No such template.", False, "No such template."),
    ],
)
def test_an_ending_is_told_by_its_code_and_its_last_words(code, words, was_ready, text):
    assert ending_words(code, words, was_ready=was_ready) == text


def test_the_models_page_lists_what_ended_by_itself_in_the_last_hour(get):
    fleet = make_fleet(loads=(1, 2, 3, 4))
    killed, asked, old, forgotten = fleet.replicas
    end(killed)
    forgotten.is_registered = True
    end(forgotten, message="Forgotten: tried")
    end(asked, message="")
    end(old, ago=timedelta(hours=2))
    page = get("model", fleet.model.name)
    assert page.context["ended"] == [killed]
    assert f"</a> on n1: {KILLED}</td>" in page.content.decode()


def test_nothing_is_listed_where_nothing_ended(get):
    assert "Ended by themselves" not in get("model", make_fleet().model.name).content.decode()


def test_the_replicas_page_says_how_it_ended_and_no_start_of_it_is_called_done(get):
    fleet = make_fleet()
    replica = fleet.replicas[0]
    make_action(fleet.decision, replica, op="start", state="done")
    done = "</i> done</span>"
    assert done in get("replica", replica.name).content.decode()
    end(replica)
    for page in (get("replica", replica.name), get("model", fleet.model.name)):
        html = page.content.decode()
        assert "</i> ended</span>" in html and done not in html
    html = get("replica", replica.name).content.decode()
    assert f"It ended by itself: {KILLED}" in html and "gone, by itself" in html


def test_a_model_at_its_maximum_is_not_wanted_and_not_placed(get):
    fleet = make_fleet()
    make_decision(fleet.model, at=fleet.at, seen_until=fleet.at, reason="at_max")
    assert "nothing waits for room or quota" in get("now").content.decode()
    fleet.model.samples.update(wanted=3)
    assert "oldest since" in get("now").content.decode()


def test_replicas_that_nothing_stops_but_a_pass_wait_for_neither_room_nor_quota(get):
    make_fleet(pool=make_pool()).model.samples.update(wanted=3)
    assert "none of them waits for room or quota" in get("now").content.decode()
