"""Operators edit what runs in the admin: by the services' rules, with reasons, and without drawing whole tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client

from capacity.models import (
    Action,
    Backoff,
    Decision,
    LanguageModel,
    Lease,
    Measurement,
    Node,
    Pass,
    PoolSettings,
    Profile,
    Replica,
    Rollup,
    Sample,
    Slo,
)
from capacity.tests.admin_pages import add_page_of, errors_of, form_data, list_of, page_of
from capacity.tests.factories import make_measurement, make_model, make_node, make_pool, make_profile, make_scope
from quotas import services
from quotas.models import Pool, User

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTILE = '"><img src=x onerror=alert(1)>'


@pytest.fixture
def olga(client: Client) -> User:
    user = User.objects.create_user("olga", is_operator=True)
    client.force_login(user)
    return user


def replica(profile: Profile, **fields: Any) -> Replica:
    model = profile.model
    made = {"name": f"r-{Replica.objects.count()}", "pool": model.pool, "model": model, "profile": profile, **fields}
    return Replica.objects.create(**made)


def full_row(number: int) -> Measurement:
    """A row of each kind that the admin lists, all of one model of its own."""
    pool = make_pool()
    slo = Slo.objects.create(name=f"slo-{Slo.objects.count()}", ttft_percentile=95, ttft_ms=500)
    model = make_model(pool=pool, scope=make_scope(), slo=slo)
    profile, node = make_profile(model), make_node(pool=pool)
    replica(profile)
    at = NOW + timedelta(minutes=number)
    decision = Decision.objects.create(
        pool=pool, model=model, at=at, seen_until=at, outcome="add", reason="over_capacity", why="because"
    )
    Action.objects.create(pool=pool, model=model, decision=decision, op="start", reason="over_capacity", generation=1)
    Pass.objects.create(pool=pool, at=at, generation=1)
    Sample.objects.create(model=model, at=at)
    Rollup.objects.create(model=model, at=at, samples=1, totals={})
    Backoff.objects.create(profile=profile, node=node, until=at)
    return make_measurement(profile, slo=slo)


CATALOGUE = [Pool, PoolSettings, Slo, Node, LanguageModel, Profile, Measurement]
RECORD = [Replica, Decision, Action, Pass, Sample, Rollup, Lease]


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


# --- the record ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", RECORD)
def test_what_passes_write_is_only_looked_at(client: Client, olga: User, kind: Any) -> None:
    full_row(0)
    row = kind.objects.get()
    assert client.get(page_of(row)).status_code == 200
    assert client.post(page_of(row), {"name": "x"}).status_code == 403
    assert client.post(page_of(row).replace("change", "delete"), {"post": "yes"}).status_code == 403
    assert client.get(add_page_of(kind)).status_code == 403


def test_a_backoff_may_be_lifted(client: Client, olga: User) -> None:
    full_row(0)
    assert client.post(page_of(Backoff.objects.get()).replace("change", "delete"), {"post": "yes"}).status_code == 302
    assert not Backoff.objects.exists()


# --- lists --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [*CATALOGUE, *RECORD, Backoff])
def test_a_list_of_50_rows_takes_as_many_queries_as_one_of_5(
    client: Client, olga: User, kind: Any, django_assert_max_num_queries: Any
) -> None:
    for number in range(5):
        full_row(number)
    client.get(list_of(kind))
    with django_assert_max_num_queries(1000) as few:
        assert client.get(list_of(kind)).status_code == 200
    for number in range(5, 50):
        full_row(number)
    with django_assert_max_num_queries(len(few)):
        response = client.get(list_of(kind))
    assert len(response.context["cl"].result_list) == 50


def test_a_hostile_name_is_text_everywhere(client: Client, olga: User) -> None:
    model = make_model(HOSTILE, pool=make_pool(HOSTILE), scope=make_scope(HOSTILE))
    measurement = make_measurement(make_profile(model, HOSTILE))
    replica(measurement.profile, gone_at=NOW)
    rows = [model.pool, model, measurement.profile, measurement]
    pages = [list_of(type(row)) for row in rows] + [page_of(row) for row in rows] + [list_of(Replica)]
    pages += [page_of(row).replace("change", kind) for row in rows for kind in ("history", "delete")]
    for url in pages:
        text = client.get(url).content.decode()
        assert "<img src=x" not in text, url
        assert "onerror" in text, url


@pytest.mark.parametrize("name", ["🦙" * 200, "' OR 1=1 --", "javascript:alert(1)", "{{ 7*7 }}", "a/b"])
def test_any_text_that_is_a_name_can_be_one(client: Client, olga: User, name: str) -> None:
    data = {"name": name, "pool": make_pool().pk, "mode": "auto", "priority": 0, "min_replicas": 1, "served_names": "[]"}
    data |= {"profiles-TOTAL_FORMS": 0, "profiles-INITIAL_FORMS": 0}
    response = client.post(add_page_of(LanguageModel), data, follow=True)
    assert response.status_code == 200
    assert LanguageModel.objects.get().name == name
