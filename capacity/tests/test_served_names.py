"""A request's name is one model's: by the rules of every edit, and where raw SQL left it otherwise, without harm."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from capacity import services
from capacity.models import LanguageModel, Pass
from capacity.observation.served_names import contested, owners, plain
from capacity.sources.gateway import ModelPush, Push
from capacity.tests.api_people import person
from capacity.tests.factories import make_model, make_pool
from capacity.tests.fleet import Fleet

NAMES = st.sampled_from("abcdef")
MODELS = st.dictionaries(NAMES, st.lists(NAMES, max_size=4), max_size=5)


@given(MODELS)
def test_every_name_has_one_owner_and_own_names_win(models):
    has = owners(models.items())
    assert set(has) == {*models, *(alias for aliases in models.values() for alias in aliases)}
    assert all(has[name] == name for name in models)
    for name, alias, owner in contested(models.items()):
        assert has[alias] == owner != name


@pytest.mark.parametrize(("stored", "read"), [(["a"], ["a"]), ("a", []), ({"a": 1}, []), (["a", 1], []), (None, []), (7, [])])
def test_aliases_that_are_no_list_of_names_are_none(stored, read):
    assert plain(stored) == read


pytestmark = pytest.mark.django_db


@pytest.fixture
def chat():
    return make_model("chat", pool=make_pool("p"), served_names=["chat-lora"])


def refused(model: LanguageModel) -> dict[str, list[str]]:
    with pytest.raises(ValidationError) as refusal:
        services.save(model, actor=None)
    return refusal.value.message_dict


@pytest.mark.parametrize("alias", ["chat", "chat-lora"])
def test_a_name_of_another_model_of_the_pool_is_no_alias(chat, alias):
    told = refused(LanguageModel(name="code", pool=chat.pool, served_names=[alias]))
    assert list(told) == ["served_names"]
    assert "“" + alias in told["served_names"][0]


def test_a_model_is_not_named_as_another_serves_neither_anew_nor_by_a_rename(chat):
    assert list(refused(LanguageModel(name="chat-lora", pool=chat.pool))) == ["name"]
    code = make_model("code", pool=chat.pool)
    code.name = "chat-lora"
    assert "take it off there first" in refused(code)["name"][0]
    assert LanguageModel.objects.get(pk=code.pk).name == "code"


def test_a_model_that_moves_into_a_pool_meets_its_names(chat):
    other = make_model("other", pool=make_pool("q"), served_names=["chat-lora"])
    other.pool = chat.pool
    assert list(refused(other)) == ["served_names"]


def test_another_pool_may_serve_under_the_same_alias(chat):
    services.save(LanguageModel(name="other", pool=make_pool("q"), served_names=["chat-lora"]), actor=None)
    assert LanguageModel.objects.get(name="other").served_names == ["chat-lora"]


def test_an_alias_that_becomes_the_name_and_one_that_stands_twice_are_left_out(chat):
    chat.name, chat.served_names = "chat-lora", ["chat", "chat-lora", "chat"]
    services.save(chat, actor=None)
    assert LanguageModel.objects.get(pk=chat.pk).served_names == ["chat"]


@pytest.mark.parametrize("name", ["chat", "lora-1", "lora-2"])
def test_a_push_by_any_of_its_names_wakes_a_model(name):
    fleet = Fleet(min_replicas=0, scale_to_zero=True, served_names=["lora-1", "lora-2"])
    fleet.a_pass()
    fleet.fake.advance(15)
    fleet.pushes.pushes = (Push(source="g", at=fleet.fake.now(), models={name: ModelPush(held=1)}),)
    fleet.a_pass()
    assert len(fleet.names("starting")) == 1


def invalid() -> list[str]:
    return [row["subject"] + ": " + row["detail"] for row in Pass.objects.latest("id").problems if row["code"] == "invalid_row"]


def test_two_models_that_share_a_stored_name_are_named_and_one_has_its_requests():
    fleet = Fleet(min_replicas=0, scale_to_zero=True)
    make_model("zeta", pool=fleet.pool, min_replicas=0, scale_to_zero=True, served_names=["both"])
    LanguageModel.objects.filter(name="chat").update(served_names=["both", "mine"])
    fleet.pushes.pushes = (Push(source="g", at=fleet.fake.now(), models={"both": ModelPush(held=2)}),)
    assert fleet.a_pass().outcome == "done"
    assert invalid() == ["model:zeta: chat is asked for by “both” too, and has those requests; take the name off one of them"]
    held = {row.name: row.last_decision.reason for row in LanguageModel.objects.select_related("last_decision")}
    assert held == {"chat": "wake", "zeta": "steady"}


@pytest.mark.parametrize("stored", [{"a": 1}, "text", [1, 2]])
def test_stored_aliases_that_are_no_names_are_named_and_stop_nothing(stored):
    fleet = Fleet(min_replicas=1)
    LanguageModel.objects.update(served_names=stored)
    assert fleet.a_pass().sent == 1
    assert "are no list of names" in invalid()[0]
    gateway = person("gateway", is_service=True)
    assert gateway.get("/api/v1/endpoints").json()["models"] == [{"name": "chat", "served_names": []}]
    assert gateway.post("/api/v1/models/nobody/wake").status_code == 404


def test_an_alias_of_models_of_two_pools_wakes_none_of_them(chat):
    make_model("other", pool=make_pool("q"), served_names=["chat-lora"])
    answer = person("gateway", is_service=True).post("/api/v1/models/chat-lora/wake")
    assert answer.status_code == 400
    assert "chat, other" in answer.json()["error"]["message"]
    assert not LanguageModel.objects.exclude(woken_at=None).exists()
