"""A NUL in an address: no such page, on every database (PostgreSQL refuses to be asked for it)."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from capacity.tests.api_people import person
from capacity.tests.pages import make_fleet, make_person

pytestmark = pytest.mark.django_db
NAMED = ["model", "model_chart", "model_end_rest", "model_mode", "model_retire", "replica", "pool_brake", "take_over"]
LISTS = ["now", "models", "nodes", "engines", "tenants", "measurements", "decisions", "engine_add"]
API = [
    *("pools/{}/brake", "pools/{}/take-over", "models/{}/mode", "models/{}/retire", "models/{}/end_rest", "models/{}/wake"),
    *("nodes/{}/cordon", "endpoints/registered/{}", "models/{}", "replicas/{}", "scopes/{}"),
]


@pytest.fixture
def root() -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(make_person("root", is_superuser=True, is_staff=True))
    return client


@pytest.mark.parametrize("page", [*NAMED, "node", "node_cordon", "engine_forget", "help"])
def test_no_page_has_a_nul_in_its_name(root, page):
    url = reverse(page, args=["a\0b"])
    assert {root.get(url).status_code, root.post(url, {"reason": "x"}).status_code} == {404}


@pytest.mark.parametrize("page", LISTS)
def test_no_list_is_asked_for_what_has_a_nul(root, page):
    make_fleet()
    found = {root.get(reverse(page), {key: "a\0b"}).status_code for key in ("pool", "model", "q", "mode", "page", "from")}
    assert found == {404}


@pytest.mark.parametrize("path", API)
def test_the_api_knows_no_name_with_a_nul(path):
    api: APIClient = person("op", is_operator=True)
    for method in ("get", "post", "put", "patch", "delete"):
        given = {} if method == "get" else {"data": {"reason": "x"}, "format": "json", "headers": {"If-Match": "*"}}
        answer = getattr(api, method)(f"/api/v1/{path.format('a%00b')}", **given)
        assert answer.status_code in {404, 405}, (method, path)
        assert set(answer.json()) == {"error"}


@pytest.mark.parametrize(
    "path", ["models", "replicas", "nodes", "decisions", "actions", "samples", "quotas", "endpoints", "plan"]
)
def test_no_filter_of_the_api_breaks_over_a_nul(path):
    api: APIClient = person("op", is_operator=True)
    for key in ("pool", "model", "scope", "state", "name", "from", "page", "limit", "cursor", "search", "ordering"):
        assert api.get(f"/api/v1/{path}?{key}=a%00b").status_code < 500, key
