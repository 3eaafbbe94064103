"""Pages of registered engines, and what the model's page says of a start that failed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from capacity.models import Backoff, Node, Replica
from capacity.services import endpoints
from capacity.sources.look import Look
from capacity.tests.factories import make_node, make_scope
from capacity.tests.pages import HOSTILE, make_fleet, make_person
from quotas.models import Membership

pytestmark = pytest.mark.django_db
GIVEN = {"url": "http://127.0.0.1:9", "profile": "sim1", "nodes": ["n1"], "reason": "ran before", "name": "e1", "devices": ""}


@pytest.fixture(autouse=True)
def seen(monkeypatch):
    said = {"silence": "", "in_flight": 3, "unread": "", "serves": ("llama",)}
    monkeypatch.setattr(endpoints, "look", lambda url, allowed: Look(**said))
    return said


@pytest.fixture
def fleet():
    made = make_fleet(scope=make_scope("acme"))
    make_node("n1", pool=made.pool, resources={"sim": 4}, foreign={"sim": 1}, foreign_devices={"GPU-1": "sim"})
    return made


@pytest.fixture
def operator(client):
    client.force_login(make_person("op", is_operator=True, is_staff=True))
    return client


def words(page):
    return " ".join(page.content.decode().replace("<b>", "").replace("</b>", "").split())


def address(fleet) -> str:
    return f"{reverse('engine_add')}?model={fleet.model.name}"


def test_the_models_page_leads_to_the_form_which_names_hosts_profiles_and_foreign_devices(operator, fleet):
    assert "add a running engine" in words(operator.get(reverse("model", args=[fleet.model.name])))
    page = words(operator.get(address(fleet)))
    assert "sim1 1 × sim" in page and "foreign on n1: GPU-1 (sim)" in page


def test_a_look_says_what_is_read_there_and_its_command_and_keeps_what_was_typed(operator, fleet, seen):
    page = operator.post(address(fleet), {**GIVEN, "act": "look"})
    text = words(page)
    assert "in flight</dt><dd>3" in text and "No warning: it can be added." in text
    command = "manage.py endpoint_add http://127.0.0.1:9 --model llama --profile sim1"
    assert command in text
    assert 'value="http://127.0.0.1:9"' in text and 'value="ran before"' in text
    assert not Replica.objects.filter(is_registered=True).exists()
    seen.update(silence="No complete answer within 3 s.", in_flight=None, unread="No answer.", serves=None)
    text = words(operator.post(address(fleet), {**GIVEN, "act": "look"}))
    assert "It does not answer now and counts as unready" in text and "it does not say" in text


def test_it_is_registered_listed_marked_and_forgotten(operator, fleet):
    page = operator.post(address(fleet), {**GIVEN, "act": "register"}, follow=True)
    assert "e1 is registered and ready. It is never stopped from here." in words(page)
    assert "registered, never stopped from here" in words(page)
    assert "engine registered by op" in words(page)
    assert "e1" in words(operator.get(reverse("engines")))
    assert "Forget it →" in words(operator.get(reverse("replica", args=["e1"])))
    forget = reverse("engine_forget", args=["e1"])
    assert "2 other ready replicas of llama stay" in words(operator.get(forget))
    assert operator.post(forget, {"reason": ""}).status_code == 400
    page = operator.post(forget, {"reason": "moved"}, follow=True)
    assert "e1 is forgotten; it runs on." in words(page)
    assert "engine forgotten by op" in words(page)
    assert "forgotten already" in words(operator.get(forget))
    assert "None is registered." in words(operator.get(reverse("engines")))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"url": "http://169.254.169.254"}, "link-local"),
        ({"url": ""}, "required"),
        ({"profile": "none"}, "valid choice"),
        ({"nodes": ["nowhere"]}, "not one of the available choices"),
        ({"devices": "GPU-1, GPU-2"}, "takes 1 device(s), and 2 are named"),
        ({"reason": ""}, "Say why"),
        ({"name": "../x"}, "between slashes"),
    ],
)
def test_what_is_refused_stands_at_its_field_and_nothing_is_written(operator, fleet, given, sentence):
    page = operator.post(address(fleet), {**GIVEN, **given, "act": "register"})
    assert page.status_code == 400
    assert sentence in words(page)
    assert not Replica.objects.filter(is_registered=True).exists()


def test_only_operators_act_and_others_see_the_engines_of_their_models(client, operator, fleet):
    operator.post(address(fleet), {**GIVEN, "act": "register"})
    viewer, foreign = make_person("viewer"), make_person("foreign")
    Membership.objects.create(user=viewer, scope=fleet.model.scope)
    client.force_login(viewer)
    assert "e1" in words(client.get(reverse("engines")))
    assert "forget →" not in words(client.get(reverse("engines")))
    assert "add a running engine" not in words(client.get(reverse("model", args=[fleet.model.name])))
    for method, path in (("get", address(fleet)), ("post", address(fleet)), ("post", reverse("engine_forget", args=["e1"]))):
        assert getattr(client, method)(path).status_code == 403
    client.force_login(foreign)
    assert "None is registered." in words(client.get(reverse("engines")))
    for path in (address(fleet), reverse("engine_forget", args=["e1"])):
        assert client.get(path).status_code == 404
    assert Replica.objects.get(name="e1").gone_at is None


def test_what_was_started_from_here_is_not_forgotten(operator, fleet):
    assert operator.get(reverse("engine_forget", args=[fleet.replicas[0].name])).status_code == 404


def test_hostile_names_and_addresses_are_shown_as_text(operator, seen):
    fleet = make_fleet(HOSTILE)
    make_node(HOSTILE, pool=fleet.pool)
    seen["serves"] = (HOSTILE,)
    page = operator.post(
        reverse("engine_add") + "?model=%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
        {**GIVEN, "nodes": [HOSTILE], "devices": HOSTILE, "act": "look"},
    )
    assert "<img src=x" not in page.content.decode()


def test_foreign_devices_stand_on_the_nodes_page(operator, fleet):
    assert "1 sim foreign: GPU-1" in words(operator.get(reverse("nodes")))


def test_a_lost_host_and_a_clock_that_is_off_are_told_apart(operator, fleet):
    now = timezone.now()
    Node.objects.filter(name="n1").update(reported_at=now - timedelta(seconds=400))
    make_node("n2", pool=fleet.pool, reported_at=now, host_clock_at=now - timedelta(hours=1))
    text = words(operator.get(reverse("now")))
    assert "n1 has not reported for 6 min: its " in text
    assert "n2 is not used, for its clock is behind" in text
    nodes = words(operator.get(reverse("nodes")))
    assert "</i> lost</span>" in nodes and "</i> silent</span><small>its clock is behind" in nodes


def test_the_models_page_says_first_why_the_last_start_failed_and_when_it_is_tried_again(operator, fleet):
    again = timezone.now() + timedelta(minutes=4)
    node = Node.objects.get(name="n1")
    Backoff.objects.create(profile=fleet.profile, node=node, until=again, failures=3, message="CUDA error:\n out of memory.")
    text = words(operator.get(reverse("model", args=[fleet.model.name])))
    assert "The last start failed on n1 (sim1): CUDA error: out of memory; tried again at" in text
    Backoff.objects.update(until=timezone.now() - timedelta(seconds=1))
    assert "The last start failed" not in words(operator.get(reverse("model", args=[fleet.model.name])))


def test_the_engines_page_says_why_it_does_not_answer_and_for_how_long(operator, fleet, redis_client, monkeypatch):
    from capacity.sources.answer_store import AnswerStore
    from capacity.views import replica_page

    monkeypatch.setattr(replica_page, "redis_client", lambda: redis_client)
    operator.post(address(fleet), {**GIVEN, "act": "register"})
    store, began = AnswerStore(redis_client), timezone.now() - timedelta(seconds=50)
    for reason, at in (("Connection refused.", began), ("No complete answer within 3 s.", began + timedelta(seconds=40))):
        store.write(fleet.pool.name, {"e1": reason}, at)
    text = words(operator.get(reverse("replica", args=["e1"])))
    assert "<dt>answers</dt><dd>no, for" in text and "50 s</time>: No complete answer within 3 s." in text
    store.write(fleet.pool.name, {"e1": ""}, timezone.now())
    assert "<dt>answers</dt>" not in words(operator.get(reverse("replica", args=["e1"])))
