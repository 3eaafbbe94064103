"""Switching a model off: who uses it is shown first, on every way to it, and what is used needs a reason."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone

from capacity import services
from capacity.briefings.retirement import sentences_of, use_of
from capacity.models import LanguageModel, Replica
from capacity.sources.gateway import ModelPush, Push
from capacity.sources.push_store import PushStore
from capacity.tests.api_people import client_of
from capacity.tests.factories import make_model, make_pool, make_profile, make_scope
from capacity.tests.pages import HOSTILE, make_person

pytestmark = pytest.mark.django_db


@pytest.fixture
def store(redis_client, redis_server, settings):
    settings.REDIS_URL = redis_server
    return PushStore(redis_client)


@pytest.fixture
def chat():
    model = make_model("chat", pool=make_pool("p"), scope=make_scope("acme"))
    profile = make_profile(model)
    for name, removable in (("chat-1", True), ("chat-2", True), ("chat-own", False)):
        Replica.objects.create(
            name=name, pool=model.pool, model=model, profile=profile, state="ready", removable=removable, nodes=["n1"]
        )
    return model


@pytest.fixture
def used(store, chat):
    """A gateway has requests on one replica and holds two; another pushes for something else."""
    at = timezone.now() - timedelta(seconds=3)
    held = {"chat": ModelPush(held=2, last_arrival_at=at)}
    store.push("p", Push(source="gw-1", at=at, replicas={"chat-1": 4}, models=held, account="edge"))
    store.push("p", Push(source="gw-2", at=at, replicas={"other-1": 9}, account="edge"))
    return chat


def olga():
    return make_person("olga", is_operator=True, is_staff=True)


def words(model) -> str:
    now = timezone.now()
    return "\n".join(sentences_of(use_of(LanguageModel.objects.get(pk=model.pk), now), now))


def test_the_last_arrival_the_gateways_and_what_would_end_are_told(used):
    told = words(used)
    assert "The last request came 3 s ago" in told
    assert "Gateway gw-1 (account edge) pushes for it: 4 requests in flight, 2 held" in told
    assert "gw-2" not in told
    assert "It belongs to acme." in told
    assert "2 replicas would be drained and ended" in told
    assert "chat-1 (ready), chat-2 (ready)" in told
    assert "chat-own run on" in told


def test_what_is_not_known_is_not_told_as_nobody(chat):
    told = words(chat)
    assert "is not known: Redis does not answer" in told
    assert "No gateway" not in told


def test_a_gateway_that_has_been_silent_for_ten_minutes_is_not_listed(store, chat):
    store.push("p", Push(source="gw-1", at=timezone.now() - timedelta(minutes=11), replicas={"chat-1": 4}))
    assert "No gateway pushes for it now." in words(chat)


def test_a_model_that_is_not_in_auto_ends_nothing_by_itself(store, chat):
    LanguageModel.objects.update(mode="advise")
    assert "In mode advise nothing is ended by itself" in words(chat)


def off(model, reason="", actor=None):
    model.min_replicas, model.max_replicas = 0, 0
    return services.save(model, actor=actor, reason=reason)


def test_a_maximum_of_0_on_a_used_model_needs_a_reason_and_says_who_uses_it(used):
    with pytest.raises(ValidationError) as refusal:
        off(used, actor=olga())
    [told] = refusal.value.message_dict["max_replicas"]
    assert "Gateway gw-1" in told
    assert "Give a reason" in told
    assert LanguageModel.objects.get().max_replicas is None
    off(used, "replaced", actor=make_person("otto", is_operator=True))
    assert LanguageModel.objects.get().max_replicas == 0


def test_one_that_nobody_uses_needs_none(store, chat):
    off(chat, actor=olga())
    assert LanguageModel.objects.get().max_replicas == 0


def test_the_page_shows_it_first_and_switches_off_with_a_reason(client, used):
    client.force_login(olga())
    url = reverse("model_retire", args=["chat"])
    assert url in client.get(reverse("model", args=["chat"])).content.decode()
    html = client.get(url).content.decode()
    assert "Gateway gw-1 (account edge)" in html
    assert client.post(url, {"reason": ""}).status_code == 400
    assert LanguageModel.objects.get().max_replicas is None
    assert client.post(url, {"reason": "replaced"})["Location"] == reverse("model", args=["chat"])
    model = LanguageModel.objects.get()
    assert (model.min_replicas, model.max_replicas) == (0, 0)
    assert model.history.first().history_change_reason == "replaced"
    assert "It is off already" in client.get(url).content.decode()


def test_a_hostile_source_stays_text(client, store, chat):
    store.push("p", Push(source=HOSTILE, at=timezone.now(), replicas={"chat-1": 1}))
    client.force_login(olga())
    assert HOSTILE not in client.get(reverse("model_retire", args=["chat"])).content.decode()


def test_pausing_and_deleting_show_it_too(client, used):
    client.force_login(make_person("root", is_superuser=True, is_staff=True))
    mode = reverse("model_mode", args=["chat"])
    assert "Gateway gw-1" in client.get(f"{mode}?mode=paused").content.decode()
    assert "Gateway gw-1" not in client.get(f"{mode}?mode=advise").content.decode()
    Replica.objects.all().delete()
    html = client.get(reverse("admin:capacity_languagemodel_delete", args=[used.pk])).content.decode()
    assert "chat: The last request came" in html
    assert "chat: Gateway gw-1" in html
    chosen = {"action": "delete_selected", "_selected_action": [used.pk]}
    html = client.post(reverse("admin:capacity_languagemodel_changelist"), chosen).content.decode()
    assert "<li>chat: Gateway gw-1" in html


def test_only_operators_switch_off(client, used):
    alice = make_person("alice", used.scope)
    client.force_login(alice)
    assert client.get(reverse("model_retire", args=["chat"])).status_code == 403
    assert client.post(reverse("model_retire", args=["chat"]), {"reason": "x"}).status_code == 403
    assert client_of(alice).post("/api/v1/models/chat/retire", {"reason": "x"}, format="json").status_code == 403
    bob = make_person("bob")
    client.force_login(bob)
    assert client.get(reverse("model_retire", args=["chat"])).status_code == 404
    assert client_of(bob).post("/api/v1/models/chat/retire", {"reason": "x"}, format="json").status_code == 404
    assert LanguageModel.objects.get().max_replicas is None


def test_the_call_looks_first_and_then_does(used):
    caller = client_of(olga())
    look = caller.post("/api/v1/models/chat/retire", {"reason": "look", "preview": True}, format="json").json()
    assert (look["preview"], look["replicas"], look["kept"]) == (True, [["chat-1", "ready"], ["chat-2", "ready"]], ["chat-own"])
    assert look["pushers"][0]["in_flight"] == 4
    assert LanguageModel.objects.get().max_replicas is None
    assert caller.post("/api/v1/models/chat/retire", {"reason": "replaced"}, format="json").status_code == 200
    assert LanguageModel.objects.get().max_replicas == 0


def test_the_command_previews_does_and_says_no(used):
    def command(*arguments):
        out = StringIO()
        call_command("model_retire", *arguments, stdout=out)
        return out.getvalue()

    assert "Gateway gw-1" in command("chat", "--preview")
    with pytest.raises(CommandError, match="Say why"):
        command("chat")
    with pytest.raises(CommandError, match="There is no model"):
        command("nobody", "--preview")
    assert LanguageModel.objects.get().max_replicas is None
    assert json.loads(command("chat", "--reason", "replaced", "--json"))["model"] == "chat"
    assert LanguageModel.objects.get().max_replicas == 0


def test_a_model_may_be_named_like_the_page(client, store, chat):
    make_model("chat/retire", pool=chat.pool)
    client.force_login(olga())
    assert "<h1>chat/retire</h1>" in client.get(reverse("model_retire", args=["chat"])).content.decode()
