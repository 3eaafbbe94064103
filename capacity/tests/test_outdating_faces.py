"""What an edit makes outdated, as it is asked in the admin, previewed in the API and shown on the model's page."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from capacity.fingerprints import present_print, run_print
from capacity.models import Decision, LanguageModel, Measurement, Profile, Replica, Slo
from capacity.tests.admin_pages import form_data, page_of
from capacity.tests.factories import make_measurement, make_model, make_profile
from quotas.models import User

pytestmark = pytest.mark.django_db
SENTENCE = (
    "This makes 1 measurement outdated: nothing is taken back on it until it is measured again; "
    "2 replicas run the old one and are replaced one at a time."
)


@pytest.fixture
def profile() -> Profile:
    model = make_model("chat", slo=Slo.objects.create(name="fast", ttft_percentile=95, ttft_ms=500))
    found = make_profile(model, "small", engine_version="0.10")
    make_measurement(found, fingerprint=present_print(found), evidence={"stages": [{"concurrency": 10}]})
    for name in ("chat-1", "chat-2"):
        Replica.objects.create(name=name, pool=model.pool, model=model, profile=found, fingerprint=run_print(found, "chat"))
    Replica.objects.create(name="chat-3", pool=model.pool, model=model, profile=found)
    return found


@pytest.fixture
def client(db: Any) -> Client:
    client = Client()
    client.force_login(User.objects.create(username="olga", is_operator=True))
    return client


def test_the_form_says_what_an_edit_makes_outdated_and_saves_it_once_that_is_confirmed(client: Client, profile: Profile) -> None:
    data = form_data(client.get(page_of(profile))) | {"engine_version": "0.11"}
    assert data.get("confirmed", "") == ""
    asked = client.post(page_of(profile), data)
    form = asked.context["adminform"].form
    assert form.errors == {"confirmed": [f"{SENTENCE} (engine version 0.10 → 0.11)"]}
    agreed = form.fields["confirmed"].widget.attrs["value"]
    assert f'value="{agreed}"' in asked.content.decode()
    another = client.post(page_of(profile), data | {"engine_version": "0.12", "confirmed": agreed})
    assert "0.10 → 0.12" in str(another.context["adminform"].form.errors)
    assert Measurement.objects.get().status == "current"
    assert client.post(page_of(profile), data | {"confirmed": agreed}).status_code == 302
    assert Measurement.objects.get().status == "stale"


def test_the_forms_of_the_model_and_of_the_slo_ask_too(client: Client, profile: Profile) -> None:
    for row, edit in ((profile.model, {"input_tokens": 100}), (profile.model.slo, {"ttft_ms": 400})):
        answer = client.post(page_of(row), form_data(client.get(page_of(row))) | edit)
        assert "makes 1 measurement outdated" in str(answer.context["adminform"].form.errors)
    data = form_data(client.get(page_of(profile.model))) | {"profiles-0-template": "another"}
    answer = client.post(page_of(profile.model), data)
    assert "on its own page" in str(answer.context["inline_admin_formsets"][0].formset.errors)
    assert Measurement.objects.get().status == "current"


def test_an_edit_that_makes_nothing_outdated_asks_nothing(client: Client, profile: Profile) -> None:
    data = form_data(client.get(page_of(profile))) | {"priority": 3}
    assert client.post(page_of(profile), data).status_code == 302


def test_the_api_previews_an_edit_in_the_words_with_which_it_warns(client: Client, profile: Profile) -> None:
    url = f"/api/v1/profiles/{profile.pk}"
    told = client.post(f"{url}/preview", {"engine_version": "0.11"}, content_type="application/json").json()
    measured = Measurement.objects.get().pk
    assert told == {
        "warnings": [SENTENCE], "changed": ["engine version 0.10 → 0.11"], "measurements": [measured],
        "replicas": ["chat-1", "chat-2"], "waiting": [],
    }  # fmt: skip
    assert Profile.objects.get().engine_version == "0.10"
    tag = client.get(url).headers["ETag"]
    done = client.patch(url, {"engine_version": "0.11"}, content_type="application/json", headers={"If-Match": tag})
    assert done.json()["warnings"] == [SENTENCE]
    found = client.get(f"/api/v1/measurements/{measured}").json()
    assert (found["stale_cause"], found["stale_why"]) == ("fingerprint", "The profile has changed: engine version 0.10 → 0.11.")


def test_edits_of_models_and_slos_are_previewed_like_those_of_profiles(client: Client, profile: Profile) -> None:
    def told(url: str, edit: dict[str, Any]) -> Any:
        return client.post(f"/api/v1/{url}/preview", edit, content_type="application/json").json()

    measured = [Measurement.objects.get().pk]
    nothing: dict[str, Any] = {"measurements": [], "replicas": [], "waiting": [], "changed": [], "warnings": []}
    assert told("models/chat", {}) == told("slos/fast", {}) == nothing
    for url, edit in (("models/chat", {"input_tokens": 100}), ("slos/fast", {"ttft_ms": 400})):
        found = told(url, edit)
        assert (found["measurements"], found["replicas"]) == (measured, [])
        assert found["changed"] and found["warnings"] == [f"{SENTENCE.split(';')[0]}."]
    assert told("slos/fast", {"nope": 1})["error"]["fields"]
    assert Measurement.objects.get().status == "current" and Slo.objects.get().ttft_ms == 500


def test_a_name_that_ends_like_the_address_of_a_preview_is_still_the_rows(client: Client, profile: Profile) -> None:
    Slo.objects.create(name="fast/preview", ttft_percentile=95, ttft_ms=500)
    assert client.get("/api/v1/slos/fast/preview").json()["name"] == "fast/preview"
    assert client.get("/api/v1/models/chat/preview").status_code == 405


def test_replacing_is_paused_and_goes_on_by_page_api_and_command(client: Client, profile: Profile) -> None:
    Profile.objects.update(engine_version="0.11")
    page, act = reverse("model", args=["chat"]), reverse("model_replacing", args=["chat"])
    shown = client.get(page).content.decode()
    assert "2 of 3 replicas are outdated: replaced one at a time" in shown
    assert shown.count("outdated: runs what its profile was before") == 2
    assert client.post(act, {"act": "pause"}).status_code == 400
    assert client.post(act, {"act": "pause", "reason": "a demo today"}).status_code == 302
    assert "2 of 3 replicas are outdated: replacing is paused" in client.get(page).content.decode()
    assert Profile.history.first().history_change_reason == "a demo today"
    body = {"paused": False, "reason": "over"}
    answer = client.post("/api/v1/models/chat/replacing", body, content_type="application/json")
    assert answer.json() == {"model": "chat", "paused": False, "outdated": ["chat-1", "chat-2"]}
    out = StringIO()
    call_command("model_replacing", "chat", "--pause", "--reason", "again", stdout=out)
    assert out.getvalue() == "chat: 2 of 3 replicas are outdated: replacing is paused.\n"
    assert Profile.objects.get().replacing_paused


def test_the_models_page_says_why_none_of_the_outdated_ones_is_replaced_now(client: Client, profile: Profile) -> None:
    def shown() -> str:
        return client.get(reverse("model", args=["chat"])).content.decode()

    Profile.objects.update(engine_version="0.11")
    LanguageModel.objects.update(mode="auto")
    model = LanguageModel.objects.get()
    facts = {"pool": model.pool, "model": model, "at": timezone.now(), "seen_until": timezone.now(), "reason": "at_max"}
    assert "outdated-waits" not in shown()
    held = Decision.objects.create(**facts, outcome="hold", why="chat-1 stays for now: the maximum is 2.")
    assert "replaced one at a time, waiting" in shown() and "chat-1 stays for now: the maximum is 2." in shown()
    Decision.objects.filter(pk=held.pk).update(outcome="add")
    assert "outdated-waits" not in shown()
    LanguageModel.objects.update(mode="advise")
    assert "in mode advise, which takes nothing back by itself" in shown()
