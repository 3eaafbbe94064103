"""What passes wrote is only looked at; lists take as many queries for many rows as for few, and names are text."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from capacity.models import (
    Backoff,
    LanguageModel,
    Replica,
)
from capacity.tests.admin_pages import add_page_of, list_of, page_of
from capacity.tests.admin_rows import CATALOGUE, NOW, RECORD, full_row, replica
from capacity.tests.factories import make_measurement, make_model, make_pool, make_profile, make_scope
from quotas.models import User

pytestmark = pytest.mark.django_db
HOSTILE = '"><img src=x onerror=alert(1)>'


@pytest.fixture
def olga(client: Client) -> User:
    user = User.objects.create_user("olga", is_operator=True)
    client.force_login(user)
    return user


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
    data = {"name": name, "pool": make_pool().pk, "mode": "advise", "priority": 0, "min_replicas": 1, "served_names": "[]"}
    data |= {"profiles-TOTAL_FORMS": 0, "profiles-INITIAL_FORMS": 0}
    response = client.post(add_page_of(LanguageModel), data, follow=True)
    assert response.status_code == 200
    assert LanguageModel.objects.get().name == name
