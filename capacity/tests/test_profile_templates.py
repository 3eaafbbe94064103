"""Parameters of a profile: numbers are stored as text, and what no host would start is said where it is typed."""

from __future__ import annotations

import json

import pytest
from django.core.exceptions import ValidationError

from capacity import services
from capacity.models import Node, Profile
from capacity.tests.api_people import person
from capacity.tests.factories import make_model, make_node, make_profile
from capacity.tests.fleet import Fleet

pytestmark = pytest.mark.django_db

VLLM = {"vllm": {"weights": True, "tensor_parallel": False}}


def saved(profile: Profile, **fields) -> list[str]:
    for name, value in fields.items():
        setattr(profile, name, value)
    return services.save(profile, actor=None)


@pytest.mark.parametrize(("typed", "stored"), [(2, "2"), (0.5, "0.5"), (1e-7, "0.0000001"), ("a b", "a b"), (-3, "-3")])
def test_a_number_may_be_typed_as_a_number_and_is_stored_as_text(typed, stored):
    profile = make_profile(template="vllm")
    saved(profile, parameters={"tensor_parallel": typed})
    assert Profile.objects.get(pk=profile.pk).parameters == {"tensor_parallel": stored}


@pytest.mark.parametrize("typed", [True, None, [2], {"a": 1}])
def test_what_is_neither_text_nor_number_is_refused(typed):
    with pytest.raises(ValidationError) as refused:
        saved(make_profile(template="vllm"), parameters={"tensor_parallel": typed})
    assert "Write a text or a number" in refused.value.message_dict["parameters"][0]


def test_the_api_takes_numbers_too_and_the_same_edit_again_writes_nothing():
    operator = person("op", is_operator=True)
    profile = make_profile(template="vllm")
    for expected in (1, 1):
        tag = operator.get(f"/api/v1/profiles/{profile.pk}")["ETag"]
        body = json.dumps({"parameters": {"tensor_parallel": 2}})
        answer = operator.patch(
            f"/api/v1/profiles/{profile.pk}", body, content_type="application/json", headers={"if-match": tag}
        )
        assert answer.status_code == 200, answer.content
        assert answer.json()["parameters"] == {"tensor_parallel": "2"}
        assert Profile.history.filter(id=profile.pk, history_type="~").count() == expected


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"weights": "a", "speed": "9"}, "Template vllm has no parameter “speed” (it has: tensor_parallel, weights)."),
        ({}, "Template vllm needs the parameter “weights”."),
    ],
)
def test_what_every_host_with_the_template_would_refuse_is_refused_where_it_is_typed(parameters, sentence):
    model = make_model()
    make_node(pool=model.pool, templates=VLLM)
    make_node(pool=model.pool, templates={"other": {}})
    profile = make_profile(model, template="vllm", parameters={"weights": "a"})
    with pytest.raises(ValidationError) as refused:
        saved(profile, parameters=parameters)
    assert refused.value.message_dict["parameters"] == [sentence]
    assert Profile.objects.get(pk=profile.pk).parameters == {"weights": "a"}


def test_a_template_that_no_host_has_yet_is_a_warning():
    model = make_model()
    make_node("n1", pool=model.pool, templates=VLLM)
    (warning,) = saved(make_profile(model), template="sglang")
    assert warning == "No host has a runtime template “sglang”: n1 would refuse to start it."


def test_nothing_is_said_where_no_host_has_named_its_templates():
    model = make_model()
    make_node(pool=model.pool)
    assert saved(make_profile(model), template="anything", parameters={"x": "1"}) == []


def test_a_host_that_differs_is_named_and_the_others_may_start_it():
    model = make_model()
    make_node("n1", pool=model.pool, templates=VLLM)
    make_node("n2", pool=model.pool, templates={"vllm": {"weights": True}})
    (warning,) = saved(make_profile(model), template="vllm", parameters={"weights": "a", "tensor_parallel": "2"})
    assert warning.startswith("On n2: Template vllm has no parameter “tensor_parallel”")


def test_another_edit_of_a_profile_whose_hosts_changed_is_not_in_the_way():
    model = make_model()
    profile = make_profile(model, template="vllm", parameters={"gone": "1"})
    make_node("n1", pool=model.pool, templates=VLLM)
    assert len(saved(profile, priority=5)) == 2
    assert Profile.objects.get(pk=profile.pk).priority == 5


def test_what_hosts_say_of_templates_and_foreign_devices_is_kept_with_the_node():
    fleet = Fleet(min_replicas=0)
    report = fleet.fake._nodes["n1"].report
    from dataclasses import replace

    fleet.fake._nodes["n1"].report = replace(report, templates=VLLM, foreign_devices={"GPU-1": "gpu/l4"})
    fleet.passes(1)
    node = Node.objects.get(name="n1")
    assert (node.templates, node.foreign_devices) == (VLLM, {"GPU-1": "gpu/l4"})
