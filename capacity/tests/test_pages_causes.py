"""Now tells causes before what follows from them: lost, silent and cordoned hosts with what they take away, and until when."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from capacity.clock import countdown
from capacity.models import Lease, Node
from capacity.tests.factories import make_node, make_scope
from capacity.tests.pages import make_decision, make_fleet, make_person

pytestmark = pytest.mark.django_db


@pytest.fixture
def attention(client):
    client.force_login(make_person("root", is_superuser=True, is_staff=True))
    return lambda: client.get(reverse("now")).context["frame"].attention


def lack_room(fleet):
    limits = [{"kind": "room", "resource": "sim", "free": 0, "largest_free": 0}]
    make_decision(fleet.model, at=fleet.at, seen_until=fleet.at, reason="no_room", why="More is needed.", limited_by=limits)


def silent_for(fleet, name="n1", **fields):
    seconds = fields.pop("seconds")
    return make_node(name, pool=fleet.pool, reported_at=timezone.now() - timedelta(seconds=seconds), **fields)


def test_hosts_come_before_what_follows_from_them_and_lost_ones_first(attention):
    fleet = make_fleet(loads=(14, 9))
    silent_for(fleet, "a-silent", seconds=60)
    silent_for(fleet, "z-lost", seconds=4000)
    silent_for(fleet, "cordoned", seconds=0, schedulable=False)
    lack_room(fleet)
    labels = [item.label for item in attention()]
    assert labels == ["lost", "silent", "cordoned", "over capacity", "no room"]


def test_a_silent_host_says_when_it_is_lost_and_what_follows(attention):
    silent_for(make_fleet(), seconds=48)
    (item,) = attention()
    assert item.text.startswith(
        "has not reported for 48 s; its 2 replicas are unknown and left alone. The host counts as lost in 4 min 1"
    )
    assert item.text.endswith(" s, and then its 2 replicas are replaced where there is room.")


def test_a_host_is_lost_only_after_it_could_be_heard_all_the_while(attention):
    fleet = make_fleet()
    silent_for(fleet, seconds=4000)
    Lease.objects.update_or_create(pool=fleet.pool, defaults={"unbroken_since": timezone.now() - timedelta(seconds=100)})
    (item,) = attention()
    assert item.label == "silent"
    assert "The host counts as lost in 3 min " in item.text


def test_a_lost_host_says_what_is_missing(attention):
    silent_for(make_fleet(), seconds=4000, resources={"sim": 16, "h100": 8})
    (item,) = attention()
    assert item.text == (
        "has not reported for 66 min: its 8 h100, 16 sim are missing; its 2 replicas are replaced where there is room."
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"seconds": 0, "schedulable": False}, "16 sim on n7, which is cordoned"),
        ({"seconds": 60}, "16 sim on n7, which is silent"),
        ({"seconds": 4000, "schedulable": False}, "16 sim on n7, which is lost"),
    ],
)
def test_what_lacks_room_names_the_units_that_are_out(attention, fields, words):
    fleet = make_fleet()
    silent_for(fleet, "n7", resources={"sim": 16}, **fields)
    silent_for(fleet, "n8", resources={"h100": 8}, seconds=0, schedulable=False)
    lack_room(fleet)
    (item,) = [item for item in attention() if item.label == "no room"]
    assert item.text.startswith(f"More is needed. Out of use: {words}. For ")


def test_a_cordoned_host_is_told_while_replicas_are_on_it_or_its_room_is_lacked(attention):
    fleet = make_fleet()
    silent_for(fleet, "n7", seconds=0, schedulable=False)
    assert attention() == []
    lack_room(fleet)
    assert attention()[0].text == "is cordoned: nothing new is placed on its 8 sim."
    fleet.decision.delete()
    Node.objects.filter(name="n7").update(schedulable=True)
    silent_for(fleet, "n1", seconds=0, schedulable=False)
    assert attention()[0].text == "is cordoned: nothing new is placed on its 8 sim; its 2 replicas are moved away."


def test_who_sees_no_hardware_reads_of_none(client):
    scope = make_scope()
    fleet = make_fleet(scope=scope)
    silent_for(fleet, "gpu-host-1", seconds=4000)
    lack_room(fleet)
    client.force_login(make_person("alice", scope))
    html = client.get(reverse("now")).content.decode()
    assert "More is needed." in html and "gpu-host-1" not in html


@pytest.mark.parametrize(("seconds", "text"), [(250, "4 min 10 s"), (45, "45 s"), (120, "2 min"), (9000, "2 h"), (-3, "0 s")])
def test_a_countdown_is_told_to_the_second(seconds, text):
    assert countdown(seconds) == text
