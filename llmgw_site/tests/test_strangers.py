"""A stranger at every address of the resolver: what is not on the short list sends him to the login or refuses him.

A new address is walked as soon as it is there, and fails until it asks for a login.
"""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, resolve
from django.urls.converters import get_converters

OPEN = {"healthz", "readyz", "login", "logout"}
"""Health and sign-in. Signing out is harmless: a stranger has no session, and is sent to the login."""

EXAMPLES = {"int": "1", "path": "a/b", "str": "x", "slug": "x", "uuid": "0" * 8 + "-0000-0000-0000-" + "0" * 12}


def walk(patterns, before=""):
    """(route, an address it matches, name) of each pattern of the resolver, included ones too."""
    for entry in patterns:
        route = before + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from walk(entry.url_patterns, route)
        elif isinstance(entry, URLPattern):
            yield route, "/" + address(route), entry.name


def address(route):
    """An address for a route: converters filled with examples, the simple regular expressions of Django's own undone."""
    filled = re.sub(r"\(\?P<\w+>([^()]*)\)", lambda found: re.match(r"\w*", found[1])[0] or "x", route)
    filled = re.sub(r"<(?:(\w+):)?\w+>", lambda found: EXAMPLES[found[1] or "str"], filled)
    filled = filled.replace("([^/]+)", "1")
    return filled.replace("^", "").replace("$", "").replace("\\Z", "").replace("\\", "")


ADDRESSES = sorted({(route, found, name or "") for route, found, name in walk(get_resolver().url_patterns)})
CLOSED = [(route, found) for route, found, name in ADDRESSES if name not in OPEN]


def plain(route):
    return route.replace("^", "")


def refuses(response):
    if response.status_code == 302:
        return response["Location"].startswith(("/login/", "/admin/login/"))
    return response.status_code in {401, 403, 404}


def test_the_walk_reaches_pages_admin_and_api():
    routes = {route for route, _, _ in ADDRESSES}
    assert {"healthz", "api/v1/load", "api/v1/models/<path:name>", "api/v1/docs/", "api/v1/schema/"} <= routes
    assert any(route.startswith("admin/") for route in routes)
    assert len(routes) > 60


def test_the_examples_fill_every_kind_of_place():
    used = {found[1] for route, _, _ in ADDRESSES for found in re.finditer(r"<(\w+):\w+>", route)}
    assert used <= EXAMPLES.keys() & get_converters().keys()
    assert not [(route, found) for route, found, _ in ADDRESSES if plain(resolve(found).route) != plain(route)]


def test_the_open_list_names_addresses_that_exist():
    assert {name for _, _, name in ADDRESSES} >= OPEN


@pytest.mark.django_db
@pytest.mark.parametrize(("route", "found"), CLOSED)
def test_a_stranger_is_refused_by_every_method(route, found):
    # an address that is not of this machine: metrics are open to loopback
    client = Client(raise_request_exception=False, REMOTE_ADDR="192.0.2.1")
    for method in ("get", "post", "put", "patch", "delete"):
        body = {} if method == "get" else {"data": "{}", "content_type": "application/json"}
        response = getattr(client, method)(found, **body)
        assert refuses(response), f"{method} {found} ({route}) answers a stranger with {response.status_code}"


@pytest.mark.django_db
@pytest.mark.parametrize("header", ["Bearer", "Bearer nonsense", "Bearer a b", "Token x", "Bearer " + "x" * 5000, "Basic eDp4"])
def test_a_token_that_is_none_opens_nothing(header):
    client = Client(raise_request_exception=False, headers={"Authorization": header})
    response = client.get("/api/v1/models")
    assert response.status_code == 401
    assert set(response.json()) == {"error"}
