"""Operators edit what runs in the admin: by the services' rules, with reasons, and without drawing whole tables."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client

from capacity.models import (
    Backoff,
    LanguageModel,
    Measurement,
    Node,
    PoolSettings,
    Profile,
    Sample,
    Slo,
)
from capacity.tests.admin_pages import add_page_of, errors_of, form_data, list_of, page_of
from capacity.tests.admin_rows import CATALOGUE, NOW, RECORD, full_row, replica
from capacity.tests.factories import make_measurement, make_model, make_node, make_pool, make_profile, make_scope
from quotas import services
from quotas.models import Pool, User

pytestmark = pytest.mark.django_db
HOSTILE = '"><img src=x onerror=alert(1)>'


@pytest.fixture
def olga(client: Client) -> User:
    user = User.objects.create_user("olga", is_operator=True)
    client.force_login(user)
    return user


# --- the catalogue ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", CATALOGUE)
def test_an_unchanged_form_writes_no_history(client: Client, olga: User, kind: Any) -> None:
    made = full_row(0)
    made.evidence = {"stages": [{"concurrency": 10}]}
    made.save()
    url = page_of(kind.objects.get())
    before = (services.revision(), [len(other.history.all()) for other in CATALOGUE])
    data = form_data(client.get(url))
    response = client.post(url, data)
    assert response.status_code == 302, errors_of(response)
    assert (services.revision(), [len(other.history.all()) for other in CATALOGUE]) == before


@pytest.mark.parametrize("kind", [Pool, Slo, Node, LanguageModel])
def test_an_edit_stands_in_the_history_with_its_reason(client: Client, olga: User, kind: Any) -> None:
    full_row(0)
    row = kind.objects.get()
    data = form_data(client.get(page_of(row))) | {"name": "renamed", "reason": "because"}
    assert client.post(page_of(row), data).status_code == 302
    entry = row.history.first()
    assert (entry.name, entry.history_user, entry.history_change_reason) == ("renamed", olga, "because")


def test_an_edit_leaves_what_a_pass_wrote_meanwhile(client: Client, olga: User) -> None:
    model = make_model()
    data = form_data(client.get(page_of(model))) | {"priority": 9}
    LanguageModel.objects.filter(pk=model.pk).update(woken_at=NOW, short_since=NOW)
    assert client.post(page_of(model), data).status_code == 302
    model.refresh_from_db()
    assert (model.priority, model.woken_at, model.short_since) == (9, NOW, NOW)


@pytest.mark.parametrize("kind", [PoolSettings, Node, LanguageModel, Profile, Measurement])
def test_a_stale_form_is_refused(client: Client, olga: User, kind: Any) -> None:
    full_row(0)
    row = kind.objects.get()
    data = form_data(client.get(page_of(row)))
    row.save()
    assert "changed while you were editing" in errors_of(client.post(page_of(row), data))


def test_a_new_pool_gets_settings_and_a_lease(client: Client, olga: User) -> None:
    assert client.post(add_page_of(Pool), {"name": "main"}).status_code == 302
    pool = Pool.objects.get()
    assert pool.settings.reclaim is False
    assert pool.lease.holder == ""


def test_a_wake_as_long_as_the_idle_time_is_shown_at_its_field(client: Client, olga: User) -> None:
    settings = make_pool().settings
    data = form_data(client.get(page_of(settings))) | {"wake_seconds": 600, "idle_seconds": 600}
    errors = client.post(page_of(settings), data).context["adminform"].form.errors
    assert "wake seconds 600, idle seconds 600" in errors["wake_seconds"][0]


def test_a_maximum_below_the_minimum_is_shown_at_its_field(client: Client, olga: User) -> None:
    model = make_model()
    data = form_data(client.get(page_of(model))) | {"min_replicas": 3, "max_replicas": 1}
    errors = client.post(page_of(model), data).context["adminform"].form.errors
    assert errors["max_replicas"] == ["max_replicas is below min_replicas (max replicas 1, min replicas 3)."]


def test_units_stay_while_replicas_exist_also_in_the_list_under_the_model(client: Client, olga: User) -> None:
    profile = make_profile()
    replica(profile)
    data = form_data(client.get(page_of(profile))) | {"units": 2}
    assert "units" in client.post(page_of(profile), data).context["adminform"].form.errors
    data = form_data(client.get(page_of(profile.model))) | {"profiles-0-units": 2}
    assert "Replicas of" in errors_of(client.post(page_of(profile.model), data))
    profile.refresh_from_db()
    assert profile.units == 1


def test_a_profile_with_replicas_is_not_deleted_under_its_model(client: Client, olga: User) -> None:
    profile = make_profile()
    replica(profile)
    data = form_data(client.get(page_of(profile.model))) | {"profiles-0-DELETE": "on"}
    assert "retire the profile" in errors_of(client.post(page_of(profile.model), data))
    assert Profile.objects.exists()


def test_a_model_is_made_with_its_profiles_in_one_edit(client: Client, olga: User) -> None:
    pool = make_pool()
    data = {"name": "m", "pool": pool.pk, "mode": "auto", "priority": 0, "min_replicas": 1, "served_names": "[]"}
    data |= {"profiles-TOTAL_FORMS": 1, "profiles-INITIAL_FORMS": 0, "profiles-0-name": "p", "profiles-0-resource": "sim"}
    data |= {"profiles-0-units": 2, "profiles-0-hosts": 1, "profiles-0-priority": 0, "profiles-0-state": "active"}
    response = client.post(add_page_of(LanguageModel), data | {"reason": "new"})
    assert response.status_code == 302, errors_of(response)
    entry = Profile.objects.get(model__name="m").history.get()
    assert (entry.units, entry.history_user, entry.history_change_reason) == (2, olga, "new")


def test_a_model_with_replicas_is_not_deleted_and_the_page_says_what_to_do(client: Client, olga: User) -> None:
    profile = make_profile()
    replica(profile)
    url = page_of(profile.model).replace("change", "delete")
    for response in (client.get(url), client.post(url, {"post": "yes"}, follow=True)):
        assert "set max_replicas to 0 and wait" in response.content.decode()
    assert LanguageModel.objects.exists()


def test_a_deletion_says_in_numbers_what_goes_along(client: Client, olga: User) -> None:
    model = make_model()
    Sample.objects.bulk_create(Sample(model=model, at=NOW + timedelta(seconds=n)) for n in range(120))
    text = client.get(page_of(model).replace("change", "delete")).content.decode()
    assert "<strong>120</strong> samples" in text


def test_a_measurement_typed_in_is_assumed(client: Client, olga: User) -> None:
    profile = make_profile()
    data = form_data(client.get(page_of(profile))) | {"measurements-TOTAL_FORMS": 1}
    data |= {"measurements-0-max_concurrency": 12, "measurements-0-tokens_per_second": "300.5"}
    data |= {"measurements-0-measured_at_0": "2026-03-01", "measurements-0-measured_at_1": "12:00:00"}
    data |= {"measurements-0-profile": profile.pk, "measurements-0-status": "current"}
    response = client.post(page_of(profile), data)
    assert response.status_code == 302, errors_of(response)
    measurement = Measurement.objects.get()
    assert (measurement.status, measurement.tokens_per_second) == ("assumed", Decimal("300.5"))


def test_a_measurement_cannot_be_declared_current_by_hand(client: Client, olga: User) -> None:
    measurement = make_measurement(status="assumed")
    data = form_data(client.get(page_of(measurement))) | {"status": "current", "evidence": '{"stages": [1]}'}
    response = client.post(page_of(measurement), data, follow=True)
    assert "stored as assumed" in response.content.decode()
    measurement.refresh_from_db()
    assert (measurement.status, measurement.evidence) == ("assumed", {})


def test_an_outdated_measurement_is_accepted_with_a_reason_only(client: Client, olga: User) -> None:
    measurement = make_measurement(status="stale", evidence={"stages": [{"concurrency": 10}]})
    data = form_data(client.get(page_of(measurement))) | {"status": "current"}
    assert "status" in client.post(page_of(measurement), data).context["adminform"].form.errors
    assert client.post(page_of(measurement), data | {"reason": "the flags mean the same"}).status_code == 302
    measurement.refresh_from_db()
    assert measurement.status == "current"


@pytest.mark.parametrize("typed", ["[]", "{", '{"sim": 1.5}', '{"sim": NaN}', '"sim"', "[" * 100_000])
def test_resources_that_are_no_resources_are_shown_at_their_field(client: Client, olga: User, typed: str) -> None:
    data = {"name": "n", "pool": make_pool().pk, "labels": "{}", "schedulable": "on", "resources": typed}
    response = client.post(add_page_of(Node), data)
    assert list(response.context["adminform"].form.errors) == ["resources"]


def test_what_a_host_reports_is_not_typed(client: Client, olga: User) -> None:
    node = make_node(resources={"sim": 8}, reported_at=NOW)
    data = form_data(client.get(page_of(node))) | {"resources": '{"sim": 99}', "schedulable": ""}
    assert client.post(page_of(node), data).status_code == 302
    node.refresh_from_db()
    assert (node.resources, node.schedulable) == ({"sim": 8}, False)


def test_the_choice_of_a_row_is_never_a_list_of_all(client: Client, olga: User) -> None:
    for _ in range(30):
        make_scope()
    made = full_row(0)
    for row in (made, made.profile, made.profile.model):
        assert client.get(page_of(row)).content.decode().count("<option") < 40
    for row_admin in admin.site._registry.values():
        relations = [f.name for f in row_admin.model._meta.fields if f.is_relation and f.editable]
        drawn = set(relations) - set(row_admin.autocomplete_fields) - set(row_admin.readonly_fields)
        assert not drawn or row_admin.opts.app_label not in {"capacity", "quotas"} or not editable(row_admin), row_admin


def editable(row_admin: Any) -> bool:
    return row_admin.opts.model not in {*RECORD, Backoff, PoolSettings} and row_admin.opts.model_name != "scopeedge"


def test_autocompletion_finds_by_name(client: Client, olga: User) -> None:
    make_scope("research")
    asked = {"app_label": "capacity", "model_name": "languagemodel", "field_name": "scope", "term": "sear"}
    found = client.get("/admin/autocomplete/", asked).json()["results"]
    assert [row["text"] for row in found] == ["research"]


@pytest.mark.parametrize("address", ["1/change/history/", "x/history/", "999999999999999999999/history/", "1/history/x/"])
def test_a_history_of_what_does_not_exist_is_not_found(client: Client, olga: User, address: str) -> None:
    assert client.get(list_of(LanguageModel) + address).status_code in (302, 404)


def test_an_older_version_is_brought_back_as_an_edit_of_its_own(client: Client, olga: User) -> None:
    model = make_model(priority=1)
    first = model.history.get()
    model.priority = 5
    services.save(model, actor=None)
    LanguageModel.objects.filter(pk=model.pk).update(woken_at=NOW)
    url = page_of(model).replace("change", f"history/{first.pk}")
    data = {bound.html_name: bound.value() for bound in client.get(url).context["adminform"].form if bound.value() is not None}
    data |= {"served_names": "[]", "scale_to_zero": "", "reason": "it was better"}
    assert client.post(url, data).status_code == 302
    model.refresh_from_db()
    assert (model.priority, model.woken_at) == (1, NOW)
    assert model.history.first().history_change_reason == "it was better"
