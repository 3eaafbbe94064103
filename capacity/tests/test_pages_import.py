"""The page that imports: files are read once, looked at, and stored whole or not at all; only operators."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from capacity.models import Measurement
from capacity.tests.factories import make_model, make_profile, make_scope
from capacity.tests.pages import HOSTILE, make_person
from capacity.tests.result_files import vllm_lines

pytestmark = pytest.mark.django_db
SLO = "ttft p95 500"


@pytest.fixture
def profile() -> Any:
    return make_profile(make_model("llama-8b"), "h100")


@pytest.fixture
def operator(client: Any) -> Any:
    person = make_person("oscar", is_operator=True)
    client.force_login(person)
    return person


def send(client: Any, *contents: bytes, **fields: Any) -> Any:
    files = [SimpleUploadedFile(f"run-{number}.json", content) for number, content in enumerate(contents)]
    return client.post(reverse("measurements_import"), {"slo": SLO, "file": files, "act": "look", **fields})


def test_a_look_shows_the_curve_and_the_measurement_and_stores_nothing(client: Any, operator: Any, profile: Any) -> None:
    answer = send(client, vllm_lines(), profile=profile.pk)
    text = answer.content.decode()
    assert (answer.status_code, answer.context["row"].max_concurrency, Measurement.objects.count()) == (200, 2, 0)
    assert "misses" in text
    assert answer.context["figure"]["data"]


def test_what_was_looked_at_is_stored_without_the_files(client: Any, operator: Any, profile: Any) -> None:
    carried = send(client, vllm_lines(), profile=profile.pk).context["carried"]
    answer = send(client, profile=profile.pk, carried=carried, act="store", reason="night")
    stored = Measurement.objects.get()
    assert (answer.status_code, answer.url) == (302, reverse("measurement", args=[stored.pk]))
    assert (stored.max_concurrency, stored.kind, len(stored.evidence["files"][0]["sha256"])) == (2, "located", 64)
    assert stored.history.get().history_user == operator


def test_several_sweeps_are_listed_and_one_is_chosen(client: Any, operator: Any, profile: Any) -> None:
    two = (vllm_lines(), vllm_lines(model_id="other"))
    looked = send(client, *two, profile=profile.pk)
    assert (len(looked.context["sweeps"]), looked.context["chosen"]) == (2, None)
    refused = send(client, profile=profile.pk, carried=looked.context["carried"], act="store", reason="x")
    assert (refused.status_code, "sweep" in refused.context["form"].errors) == (400, True)
    send(client, profile=profile.pk, carried=looked.context["carried"], act="store", reason="x", sweep=1)
    assert Measurement.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "where"),
    [({"reason": ""}, "reason"), ({"slo": "soon"}, "slo"), ({"profile": ""}, "profile"), ({"carried": "forged"}, "file")],
)
def test_what_is_wrong_stands_at_its_field_and_nothing_is_stored(
    client: Any, operator: Any, profile: Any, fields: dict[str, str], where: str
) -> None:
    contents = [] if "carried" in fields else [vllm_lines()]
    answer = send(client, *contents, **{"profile": profile.pk, "reason": "x", "act": "store", **fields})
    assert (answer.status_code, list(answer.context["form"].errors)) == (400, [where])
    assert not Measurement.objects.exists()


def test_files_that_hold_nothing_say_so(client: Any, operator: Any) -> None:
    answer = send(client, b"", b"<html>")
    assert (answer.status_code, len(answer.context["form"].errors["file"])) == (400, 2)


def test_names_in_files_are_never_markup(client: Any, operator: Any, profile: Any) -> None:
    text = send(client, vllm_lines(model_id=HOSTILE), profile=profile.pk).content.decode()
    assert "<img src=x" not in text


def test_viewers_do_not_import(client: Any) -> None:
    client.force_login(make_person("vera", make_scope("team")))
    assert client.get(reverse("measurements_import")).status_code == 403
    assert send(client, vllm_lines()).status_code == 403
