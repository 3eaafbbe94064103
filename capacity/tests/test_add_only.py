"""Mode add_only from plan to page: adds and cancels of its own stuck starts are done, all other removals are advice."""

from __future__ import annotations

import pytest
from django.urls import reverse

from capacity.models import Action, LanguageModel, Node
from capacity.tests.factories import make_node
from capacity.tests.fleet import Fleet
from capacity.tests.pages import make_person

pytestmark = pytest.mark.django_db


def actions(fleet):
    return set(Action.objects.filter(model=fleet.model).values_list("op", "reason", "state"))


def last(fleet):
    return LanguageModel.objects.get(pk=fleet.model.pk).last_decision


def grown(**model):
    """Three ready replicas, and the mode that may not take one back."""
    fleet = Fleet(mode="add_only", min_replicas=1, **model)
    fleet.a_pass()
    fleet.passes(1)
    fleet.share(21)
    fleet.passes(2)
    assert len(fleet.names("ready")) == 3
    return fleet


def test_adds_are_done():
    fleet = grown()
    assert actions(fleet) == {("start", "below_min", "done"), ("start", "over_capacity", "done")}


def test_what_load_would_take_back_is_advised_once_and_stays():
    fleet = grown()
    fleet.share(0)
    fleet.passes(12)
    assert len(fleet.names("ready")) == 3
    assert (last(fleet).outcome, last(fleet).reason, last(fleet).is_advice) == ("remove", "rest_under_threshold", True)
    assert Action.objects.filter(op="drain", state="advice").count() == 1
    assert Action.objects.filter(op="drain").count() == 1


def test_above_its_maximum_it_is_advised():
    fleet = grown()
    LanguageModel.objects.update(max_replicas=2)
    fleet.passes(3)
    assert len(fleet.names("ready")) == 3
    assert ("drain", "above_max", "advice") in actions(fleet)


def test_a_start_of_its_own_that_is_stuck_is_cancelled():
    fleet = Fleet(mode="add_only", min_replicas=1, settings={"start_timeout_seconds": 3})
    fleet.a_pass()
    fleet.passes(1, seconds=4)
    assert ("cancel", "start_timeout", "sent") in actions(fleet)
    cancelled = Action.objects.get(op="cancel").replica_name
    fleet.passes(1)
    assert cancelled not in fleet.names("starting", "ready", "draining")


def test_a_replica_that_turned_unready_for_too_long_is_not_stopped():
    fleet = grown()
    LanguageModel.objects.update(max_replicas=3)
    for name in fleet.names("ready"):
        fleet.fake.hang(name)
    fleet.passes(70)
    assert not Action.objects.filter(op="drain").exclude(state="advice").exists()


def test_a_cordoned_host_is_replaced_once_and_its_drain_is_advised():
    fleet = grown()
    fleet.fake.add_node("n2", "p", {"sim": 8})
    make_node("n2", pool=fleet.pool, resources={"sim": 8})
    Node.objects.filter(name="n1").update(schedulable=False)
    fleet.share(25)
    fleet.passes(8)
    assert len(fleet.names("ready")) == 4
    assert Action.objects.filter(op="start", reason="evacuate", state="done").count() == 1
    assert ("drain", "evacuate", "advice") in actions(fleet)


def test_the_page_says_what_is_advice(client):
    fleet = grown()
    fleet.share(0)
    fleet.passes(6)
    client.force_login(make_person("olga", is_operator=True))
    text = client.get(reverse("model", args=["chat"])).content.decode()
    assert "In mode add_only what would be taken back is advice." in text
    assert '<span class="tag unknown">advice</span>' in text
    assert "Last change" in text
    assert "3 added" not in text


@pytest.mark.parametrize(
    ("mode", "said"),
    [("advise", "In mode advise all of this is advice: nothing is done."), ("auto", ""), ("paused", "")],
)
def test_the_page_of_another_mode_says_its_own(client, mode, said):
    Fleet(mode=mode).a_pass()
    client.force_login(make_person("olga", is_operator=True))
    text = client.get(reverse("model", args=["chat"])).content.decode()
    assert said in text
    assert ("is advice" in text) is bool(said)
