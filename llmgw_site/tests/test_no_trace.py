"""Whoever may not see a scope finds no trace of it: no address of the resolver answers him with a name of its rows.

Each row of the other branch has the word in its name or its text, and stands in a pool of its own and in a shared one. A new kind
of address fails here until `values` knows what to put in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from capacity.models import Action, Backoff, BenchRun, Brake, Decision, LanguageModel, Pass, PoolSettings, Price, Replica, Slo
from capacity.services import save
from capacity.tests.factories import make_node, make_pool, make_profile, make_scope
from capacity.tests.pages import make_action, make_fleet
from llmgw_site.tests.test_strangers import ADDRESSES
from quotas.models import CapacityQuota, Membership, Pool, Scope, ScopeEdge, User

pytestmark = pytest.mark.django_db
WORD, NOBODY = "canary", "nobody"
ENDS_THE_SESSION = {"logout"}
FREE = {"healthz", "readyz", "help", "help_file", "view_on_site", "auth_user_password_change"}
"""Addresses without rows, and two of Django's own that only those enter who are tried elsewhere."""
OF_PAGES = ("q=anar", "pool=canary-pool", "model=canary-model")
OF_LISTS = ("search=anar", "pool=canary-pool", "scope=canary-scope", "parent=canary-scope", "model=canary-model")
BESIDES = (
    *("/models/ours-model/?format=csv", "/models/ours-model/target/?in_flight=9", "/api/v1/samples?model=ours-model"),
    *("/api/v1/endpoints?pool=shared-pool", "/api/v1/endpoints?pool=canary-pool", "/api/v1/snapshot?pool=shared-pool"),
    *("/models/?q=canary-alias", "/api/v1/models/canary-alias/target?in_flight=9", "/api/v1/models/ours-model/mode?mode=auto"),
)
KINDS = {"runs": "bench_runs", "engines": "replicas", "registered": "replicas", "benchrun": "bench_runs", "pass": "passes"}
KINDS |= {"languagemodel": "model_ids", "capacityquota": "quotas", "poolsettings": "settings", "scope": "scope_ids"}
KINDS |= {"replica": "replica_ids", "pool": "pool_ids", "node": "node_ids", "slo": "slo_ids", "user": "users"}


def branch(word: str, above: Scope, shared: Pool) -> dict[str, Any]:
    """A scope with rows of every kind; kind as it stands in addresses → what names the row there."""
    scope, user = make_scope(f"{word}-scope", above), User.objects.create(username=f"{word}-user", email=f"{word}@example.com")
    slo = Slo.objects.create(name=f"{word}-slo")
    fleet = make_fleet(f"{word}-model", pool=shared, scope=scope)
    pool, (replica, *_), model = make_pool(f"{word}-pool"), fleet.replicas, fleet.model
    LanguageModel.objects.filter(pk=model.pk).update(slo=slo, served_names=[f"{word}-alias"])
    apart = make_fleet(f"{word}-apart", pool=pool, scope=scope)
    profile = make_profile(apart.model, f"{word}-profile")
    quota = CapacityQuota.objects.create(scope=scope, pool=shared, target="sim", limit=77, guarantee=7)
    CapacityQuota.objects.create(scope=scope, pool=pool, target="sim", limit=3)
    Replica.objects.filter(pk=replica.pk).update(message=f"{word} ended", is_registered=True, url=f"http://{word}:1/")
    measurement = profile.measurements.create(max_concurrency=1, tokens_per_second=1, note=f"{word}-note", slo=slo)
    now = timezone.now()
    run = BenchRun.objects.create(profile=profile, actor=user.username, reason=f"{word}-why", message=f"{word}-end", slo=slo)
    backoff = Backoff.objects.create(
        profile=fleet.profile, node=make_node(f"{word}-node", pool=shared, reported_at=now), until=now + timedelta(hours=1)
    )
    price = Price.objects.create(pool=pool, resource=f"gpu/{word}", per_unit_hour=1, since=now)
    return {
        "scopes": scope.name,
        "scope_ids": scope.pk,
        "scopeedge": scope.parent_edges.get().pk,
        "quotas": quota.pk,
        "models": model.name,
        "model_ids": model.pk,
        "pools": pool.name,
        "pool_ids": pool.pk,
        "slos": slo.name,
        "slo_ids": slo.pk,
        "profiles": profile.pk,
        "profile": profile.pk,
        "measurements": measurement.pk,
        "measurement": measurement.pk,
        "replicas": replica.name,
        "replica_ids": replica.pk,
        "bench_runs": run.pk,
        "backoff": backoff.pk,
        "nodes": backoff.node.name,
        "node_ids": backoff.node.pk,
        "prices": price.pk,
        "price": price.pk,
        "decisions": fleet.decision.pk,
        "decision": fleet.decision.pk,
        "users": user.pk,
        "actions": (action := make_action(fleet.decision, replica)).pk,
        "action": action.pk,
        "memberships": (role := Membership.objects.create(user=user, scope=scope)).pk,
        "membership": role.pk,
        "settings": PoolSettings.objects.get(pool=pool).pk,
        "passes": Pass.objects.get(pool=pool).pk,
        "brake": pool.brake.pk,
        "lease": pool.lease.pk,
        "sample": model.samples.get().pk,
    }


@pytest.fixture
def world() -> tuple[dict[str, Any], dict[str, Any]]:
    """What names the rows of one's own branch, and those of the other. One's own rows speak of the other's."""
    above, shared = make_scope("above"), make_pool("shared-pool")
    ours, theirs = branch("ours", above, shared), branch(WORD, above, shared)
    model = LanguageModel.objects.get(name="ours-model")
    reserved = {"kind": "guarantee_reserved", "scope": f"{WORD}-scope", "units": 4}
    limit = {"kind": "limit", "scope": "above", "target": "sim", "limit": 9, "used": 9}
    why = f"In the way: the limit of above on sim is 9 and 9 are used or just granted; 4 are kept for {WORD}-scope."
    Decision.objects.filter(model=model).update(limited_by=[limit, reserved], why=why, reason="at_limit", outcome="add", count=1)
    Replica.objects.filter(model=model).update(drained_for=f"{WORD}-model", drain_reason="reclaimed", state="draining")
    Action.objects.filter(model=model).update(for_model=f"{WORD}-model")
    subjects = (f"scope:{WORD}-scope", f"model:{WORD}-model", f"node:{WORD}-node", f"replica:{WORD}-model/r0")
    Pass.objects.filter(pool=shared).update(problems=[{"code": "disagree", "subject": it, "detail": WORD} for it in subjects])
    withheld = {
        "op": "drain",
        "model": f"{WORD}-model",
        "replica": f"{WORD}-model/r0",
        "profile": "sim1",
        "nodes": [f"{WORD}-node"],
    }
    withheld |= {"reason": "idle", "rule": "stops", "also": "", "why": WORD, "since": timezone.now().isoformat()}
    Brake.objects.filter(pool=shared).update(withheld=[withheld], is_on=True, actor=f"{WORD}-user", reason=WORD)
    # it was theirs once
    for scope in (f"{WORD}-scope", "ours-scope"):
        model.refresh_from_db()
        model.scope = Scope.objects.get(name=scope)
        save(model, actor=None)
    return ours, theirs


def values(route: str, rows: dict[str, Any]) -> Iterator[str]:
    """The addresses of a route for these rows; one where it names none."""
    if "<" not in route and "(" not in route:
        yield f"/{route}"
        return
    before = re.split(r"<|\^\(", route)[0].rstrip("/").rpartition("/")[2]
    value = str(rows[KINDS.get(before, before)])
    # of a row's history the first entry
    address = re.sub(r"<[^>]+>", value, route).replace("^([^/]+)", value).replace("([^/]+)", "1").replace("$", "")
    yield f"/{address}"


def addresses(*branches: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for route, _, name in ADDRESSES:
        if name in FREE | ENDS_THE_SESSION or route in {"admin/(?P<url>.*)$"} or "app_label" in route or "/rollup/<" in route:
            continue
        if re.search(r"admin/(knox|axes|quotas/revision)", route):
            continue
        # the admin of the capacity is closed whichever row is asked for
        asked = branches[-1:] if route.startswith("admin/capacity/") else branches
        found += [address for rows in asked for address in values(route, rows)]
    return list(dict.fromkeys(found))


def lists(found: list[str]) -> list[str]:
    """Looked for by the names of the others."""
    pages = [address for address in found if re.fullmatch(r"/(|[a-z]+/|admin/quotas/[a-z]+/)", address)]
    api = [address for address in found if re.fullmatch(r"/api/v1/[a-z_]+", address)]
    asked = [f"{page}?{query}" for page in pages for query in OF_PAGES]
    return [*asked, *(f"{address}?{query}" for address in api for query in OF_LISTS), *BESIDES]


def reader(kind: str) -> User:
    user = User.objects.create(username=f"{kind}-reader")
    if kind != "stranger":
        Membership.objects.create(user=user, scope=Scope.objects.get(name="ours-scope"), role=kind)
    return user


def asked_by(kind: str, ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """A member looks at his own too. A manager, who sees what a viewer does, goes through the admin, a closed door to others."""
    found = addresses(ours, theirs) if kind != "stranger" else addresses(theirs)
    admin = [address for address in found if address.startswith("/admin/")]
    if kind == "manager":
        rest = [address for address in addresses(theirs) if address not in admin]
        return [*admin, *lists(admin), *rest]
    rest = [address for address in found if address not in admin or "/scope/" in address]
    return [*rest, *(lists(rest) if kind == "viewer" else BESIDES)]


@pytest.mark.parametrize("kind", ["stranger", "viewer", "manager"])
def test_no_address_answers_with_a_name_of_another_branch(kind: str, world: Any) -> None:
    ours, theirs = world
    if kind == "manager":
        # something of his own to edit
        ScopeEdge.objects.create(child=make_scope("ours-team"), parent=Scope.objects.get(name="ours-scope"))
    client = Client(raise_request_exception=False, REMOTE_ADDR="192.0.2.1")
    client.force_login(reader(kind))
    leaks, broken = {}, []
    for address in asked_by(kind, ours, theirs):
        answer = client.get(address)
        text = answer.getvalue().decode()
        # what was asked stands in links of the page: as often as a name that nobody has
        if WORD in text and text.count(WORD) > client.get(address.replace(WORD, NOBODY)).getvalue().decode().count(NOBODY):
            leaks[address] = text[max(0, text.index(WORD) - 60) :][:120]
        if answer.status_code >= 500:
            broken.append(address)
    assert leaks == {}
    assert broken == []


def test_the_walk_would_find_them(world: Any) -> None:
    """An admin is answered with the word at most of these addresses."""
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create(username="root", is_superuser=True))
    found = [address for address in addresses(world[1]) if "/admin/" not in address]
    assert sum(WORD.encode() in client.get(address).content for address in found) > 40
