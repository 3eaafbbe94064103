"""Registering and forgetting running engines: rules, history, command."""

from __future__ import annotations

import json

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command

from capacity import services
from capacity.models import LanguageModel, Node, Profile, Replica
from capacity.services import endpoints
from capacity.sources.look import Look
from capacity.tests.factories import make_model, make_node, make_pool, make_profile

pytestmark = pytest.mark.django_db
URL = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def seen(monkeypatch):
    """What a look at an engine tells."""
    said = {"silence": "", "in_flight": 3, "unread": "", "serves": ("chat",)}
    monkeypatch.setattr(endpoints, "look", lambda url, allowed: Look(**said))
    return said


@pytest.fixture
def chat():
    """A model of one profile of two H100, and its node."""
    pool = make_pool("p")
    make_node("n1", pool=pool, resources={"gpu/h100": 8})
    return make_profile(make_model("chat", pool=pool), "h2", resource="gpu/h100", units=2)


def engine(profile: Profile, **fields) -> Replica:
    return Replica(**{"url": URL, "model": profile.model, "profile": profile, "nodes": ["n1"], **fields})


def refused(profile: Profile, **fields) -> dict[str, list[str]]:
    with pytest.raises(ValidationError) as error:
        services.endpoint_add(engine(profile, **fields), actor=None, reason="it ran before")
    assert not Replica.objects.filter(is_registered=True).exists()
    return error.value.message_dict


def test_a_running_engine_is_registered_ready_with_its_reason(chat):
    row = engine(chat, url=" http://127.0.0.1:9/v1/ ")
    assert services.endpoint_add(row, actor=None, reason="it ran before") == []
    found = Replica.objects.get()
    assert (found.is_registered, found.removable, found.state, found.units) == (True, False, "ready", 2)
    assert (found.url, found.pool, found.name.startswith("chat-")) == ("http://127.0.0.1:9/v1", chat.model.pool, True)
    assert found.history.get().history_change_reason == "it ran before"
    assert LanguageModel.objects.get().last_change_at == pytest.approx(
        found.since, abs=__import__("datetime").timedelta(minutes=1)
    )


def test_one_that_does_not_answer_is_unready_and_that_is_said(chat, seen):
    seen["silence"] = "Cannot be connected to (Connection refused)."
    (warning,) = services.endpoint_add(engine(chat), actor=None, reason="r")
    assert warning == "It does not answer now and counts as unready: Cannot be connected to (Connection refused)."
    assert Replica.objects.get().state == "unready"


def test_a_load_that_cannot_be_read_and_another_model_are_warned_of(chat, seen):
    seen.update(in_flight=None, unread="Answered with status 404.", serves=("other", "another"))
    assert services.endpoint_add(engine(chat), actor=None, reason="r") == [
        "Its load is unknown, so nothing of chat is taken back: Answered with status 404.",
        "It serves another, other, not chat: requests that name it would fail.",
    ]


def test_a_served_name_will_do(chat, seen):
    seen["serves"] = ("chat-lora",)
    LanguageModel.objects.update(served_names=["chat-lora"])
    chat.model.refresh_from_db()
    assert services.endpoint_add(engine(chat), actor=None, reason="r") == []


def test_a_preview_says_what_is_there_and_writes_nothing(chat):
    look, warnings = services.endpoint_preview(engine(chat))
    assert (look.in_flight, warnings, Replica.objects.count()) == (3, [], 0)
    with pytest.raises(ValidationError, match="no node nowhere"):
        services.endpoint_preview(engine(chat, nodes=["nowhere"]))


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("http://169.254.169.254/v1", "link-local"),
        ("http://user:secret@10.0.0.1", "must not carry a user or a password"),
        ("ftp://10.0.0.1", "starts with http"),
        ("10.0.0.1:8000", "starts with http"),
        ("", "starts with http"),
        ("http://10.0.0.1/a b", "no spaces"),
        ("http://10.0.0.1:99999", "not a URL"),
    ],
)
def test_an_address_that_may_not_be_is_refused_without_repeating_a_secret(chat, url, word):
    said = str(refused(chat, url=url)["url"])
    assert word in said and "secret" not in said


def test_an_address_is_registered_once_however_it_is_spelt(chat):
    services.endpoint_add(engine(chat, name="first", url="http://LOCALHOST:80/v1"), actor=None, reason="r")
    for url in ("http://localhost", "http://localhost:80/metrics", "http://localhost/v1/"):
        with pytest.raises(ValidationError) as error:
            services.endpoint_add(engine(chat, url=url), actor=None, reason="r")
        assert error.value.message_dict == {"url": ["first is registered at this address already."]}


def test_an_engine_that_was_started_from_here_is_not_registered(chat):
    Replica.objects.create(name="r1", pool=chat.model.pool, model=chat.model, profile=chat, url=URL, state="ready")
    assert refused(chat) == {"url": ["r1 was started from here and runs at this address already."]}


@pytest.mark.parametrize(
    ("fields", "field", "word"),
    [
        ({"nodes": ["nowhere"]}, "nodes", "The pool p has no node nowhere"),
        ({"nodes": []}, "nodes", "runs on 1 host(s), and 0 are named"),
        ({"nodes": ["n1", "n1"]}, "nodes", "each once"),
        ({"nodes": [1]}, "nodes", "Write names"),
        ({"nodes": "n1"}, "nodes", "JSON list"),
        ({"devices": ["A"]}, "devices", "takes 2 device(s), and 1 are named"),
        ({"name": "../x"}, "name", "between slashes"),
        ({"name": "a\nb"}, "name", "control"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_field(chat, fields, field, word):
    assert word in str(refused(chat, **fields)[field])


def test_a_profile_of_another_model_and_no_reason_are_refused(chat):
    other = make_profile(make_model("other", pool=chat.model.pool), "x")
    with pytest.raises(ValidationError, match="x is a profile of other, not of chat"):
        services.endpoint_add(engine(other, model=chat.model), actor=None, reason="r")
    with pytest.raises(ValidationError) as error:
        services.endpoint_add(engine(chat), actor=None, reason=" ")
    assert "reason" in error.value.message_dict


def test_a_device_is_held_once_and_one_that_its_host_does_not_see_is_warned_of(chat):
    Node.objects.update(foreign_devices={"A": "gpu/h100", "B": "gpu/h100", "C": "gpu/h100"}, foreign={"gpu/h100": 3})
    assert services.endpoint_add(engine(chat, devices=["A", "B"], name="first"), actor=None, reason="r") == []
    with pytest.raises(ValidationError) as error:
        services.endpoint_add(engine(chat, devices=["B", "C"], url="http://127.0.0.1:10"), actor=None, reason="r")
    assert error.value.message_dict == {"devices": ["B is held by first."]}
    (warning,) = services.endpoint_add(engine(chat, devices=["C", "Z"], url="http://127.0.0.1:10"), actor=None, reason="r")
    assert warning == "n1 sees no foreign process on Z of gpu/h100."


def test_a_node_without_the_room_is_a_warning(chat):
    Node.objects.update(resources={"gpu/h100": 1})
    (warning,) = services.endpoint_add(engine(chat), actor=None, reason="r")
    assert warning.startswith("n1 has 1 of gpu/h100 and 0 are held already")


def test_forgetting_keeps_the_row_as_history_and_frees_its_address(chat):
    row = engine(chat, name="e1")
    services.endpoint_add(row, actor=None, reason="r")
    services.endpoint_remove(row, actor=None, reason="moved to the pool")
    found = Replica.objects.get()
    assert (found.state, found.url, found.gone_at is None, found.message) == ("gone", "", False, "Forgotten: moved to the pool")
    assert found.history.first().history_change_reason == "moved to the pool"
    with pytest.raises(ValidationError, match="e1 is forgotten already"):
        services.endpoint_remove(row, actor=None, reason="r")
    services.endpoint_add(engine(chat, name="e2"), actor=None, reason="r")


def test_what_was_started_from_here_is_not_forgotten_and_leaves_no_history(chat):
    row = Replica.objects.create(name="r1", pool=chat.model.pool, model=chat.model, profile=chat, url=URL, state="ready")
    with pytest.raises(ValidationError, match="was started from here"):
        services.endpoint_remove(row, actor=None, reason="r")
    assert not Replica.history.exists()


def test_model_profile_and_node_stay_as_long_as_it_does_and_say_what_to_do(chat):
    services.endpoint_add(engine(chat, name="e1"), actor=None, reason="r")
    for row in (chat.model, chat, Node.objects.get(), chat.model.pool):
        with pytest.raises(ValidationError) as error:
            services.delete(row, actor=None)
        assert "Forget what was registered and runs on by itself (e1): endpoint_remove." in error.value.messages[0]


def test_it_follows_a_new_name_of_its_model_and_profile(chat):
    services.endpoint_add(engine(chat, name="e1"), actor=None, reason="r")
    chat.model.name, chat.name = "chat-2", "h2-new"
    services.save(chat.model, actor=None)
    services.save(chat, actor=None)
    found = Replica.objects.get()
    assert (found.model.name, found.profile.name) == ("chat-2", "h2-new")


def test_the_commands_say_the_same(chat, capsys):
    given = ("--model", "chat", "--profile", "h2", "--node", "n1", "--reason", "it ran before", "--name", "e1")
    call_command("endpoint_add", URL, *given, "--preview")
    assert capsys.readouterr().out == "It answers; in flight: 3; it serves: chat. Nothing was registered.\n"
    call_command("endpoint_add", URL, *given, "--json")
    assert json.loads(capsys.readouterr().out) == {"name": "e1", "state": "ready", "warnings": []}
    with pytest.raises(CommandError, match="e1 is registered at this address already"):
        call_command("endpoint_add", URL, *given[:-2])
    with pytest.raises(CommandError, match="no model “nobody”"):
        call_command("endpoint_add", URL, *given, "--model", "nobody")
    with pytest.raises(CommandError, match="no profile “none”"):
        call_command("endpoint_add", URL, *given, "--profile", "none")
    call_command("endpoint_remove", "e1", "--reason", "r")
    assert capsys.readouterr().out == "e1 is forgotten; it runs on.\n"
    with pytest.raises(CommandError, match="forgotten already"):
        call_command("endpoint_remove", "e1", "--reason", "r")
    with pytest.raises(CommandError, match="no engine “nobody”"):
        call_command("endpoint_remove", "nobody", "--reason", "r")
