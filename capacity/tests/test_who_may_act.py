"""Every address that acts, by everybody who may not: refused, and no row of the capacity or of the tenants is another one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from capacity.models import Brake, Lease
from capacity.tests.api_people import client_of
from capacity.tests.factories import make_node, make_scope
from capacity.tests.pages import make_fleet
from quotas.models import Membership, User

pytestmark = pytest.mark.django_db
KINDS = ("viewer", "manager", "stranger", "auditor", "service")
BODIES: tuple[dict[str, Any], ...] = (
    {"act": "pull", "reason": "x"},
    {"act": "release", "version": "0", "reason": "x", "on": False},
    {"mode": "paused", "reason": "x"},
    {"schedulable": False, "reason": "x"},
    {"schedulable": "false", "reason": "x", "preview": True},
    {"url": "http://127.0.0.1:9", "profile": "sim1", "nodes": ["n1"], "model": "m", "reason": "x"},
    {"on": True, "reason": "x"},
    {"reason": "x", "confirm": "yes"},
    {"reason": "x", "act": "pause", "paused": True},
)
PAGES = {
    "pool_brake": "p",
    "take_over": "p",
    "model_mode": "m",
    "model_end_rest": "m",
    "model_retire": "m",
    "model_replacing": "m",
    "node_cordon": "n1",
    "engine_forget": "m/r0",
    "engine_add": None,
    "example_remove": None,
}
API = (
    *("pools/p/brake", "pools/p/take-over", "models/m/mode", "models/m/end_rest", "models/m/retire", "models/m/pause"),
    "models/m/replacing",
    *("nodes/n1/cordon", "endpoints/registered", "endpoints/registered/preview", "endpoints/registered/m/r0"),
    *("pools/p", "nodes/n1", "models/m", "pools", "nodes", "models"),
)


@pytest.fixture(autouse=True)
def rows(settings):
    fleet = make_fleet("m", pool=None, scope=make_scope("acme"))
    type(fleet.pool).objects.filter(pk=fleet.pool.pk).update(name="p")
    make_node("n1", pool=fleet.pool, resources={"sim": 4})
    fleet.replicas[0].is_registered = True
    fleet.replicas[0].save()
    Brake.objects.filter(pool=fleet.pool).update(is_on=True, changed_at=timezone.now())
    Lease.objects.filter(pool=fleet.pool).update(installation="another", take_over_needed="copied")
    type(fleet.model).objects.update(removals_rest_until=timezone.now() + timedelta(hours=1))
    return fleet


def somebody(kind: str, fleet: Any) -> User:
    user = User.objects.create(username=kind, is_service=kind == "service", is_staff=kind == "auditor")
    if kind in {"viewer", "manager"}:
        Membership.objects.create(user=user, scope=fleet.model.scope, role=kind)
    return user


def state() -> dict[str, list[tuple[Any, ...]]]:
    """Every row of the product's own tables, history too."""
    models = [model for app in ("capacity", "quotas") for model in apps.get_app_config(app).get_models()]
    return {model.__name__: sorted(map(repr, model._default_manager.values_list())) for model in models if model is not User}


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_acts_for_whoever_is_no_operator(rows, kind):
    client = Client(raise_request_exception=False)
    client.force_login(somebody(kind, rows))
    before = state()
    for page, name in PAGES.items():
        url = reverse(page, args=[name] if name else []) + ("?model=m" if page == "engine_add" else "")
        for body in BODIES:
            assert client.post(url, body).status_code in {302, 403, 404, 405}, (page, body)
    assert state() == before


@pytest.mark.parametrize("kind", KINDS)
def test_no_call_acts_for_whoever_is_no_operator(rows, kind):
    api = client_of(somebody(kind, rows))
    before = state()
    for path in API:
        for method in ("post", "put", "patch", "delete"):
            for body in BODIES:
                answer = getattr(api, method)(f"/api/v1/{path}", body, format="json", headers={"If-Match": "*"})
                assert answer.status_code in {403, 404, 405, 429}, (method, path, body, answer.content)
    assert state() == before
