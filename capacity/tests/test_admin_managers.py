"""The admin as a manager has it: scopes, quotas and roles below his own scope; no choice, list or history of anything else."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from capacity.tests.admin_pages import add_page_of, errors_of, form_data, list_of, page_of
from capacity.tests.factories import make_pool, make_scope
from quotas import services
from quotas.models import CapacityQuota, Membership, Pool, Scope, ScopeEdge, User

pytestmark = pytest.mark.django_db
NO_QUOTAS = {"quotas-TOTAL_FORMS": 0, "quotas-INITIAL_FORMS": 0}


@pytest.fixture
def tree() -> dict[str, Any]:
    pool, org = make_pool("pool-of-ours"), make_scope("canary-org")
    make_pool("canary-pool")
    dept, rival = make_scope("dept", org), make_scope("canary-rival", org)
    team = make_scope("team", dept)
    shared = make_scope("shared", rival, dept)
    CapacityQuota.objects.create(scope=dept, pool=pool, target="sim", limit=8, guarantee=4)
    far = make_scope("canary-far", org)
    foreign = CapacityQuota.objects.create(scope=far, pool=Pool.objects.get(name="canary-pool"), target="sim", limit=5)
    other = Membership.objects.create(user=User.objects.create(username="canary-user"), scope=rival)
    return {
        "org": org,
        "dept": dept,
        "rival": rival,
        "team": team,
        "shared": shared,
        "quota": foreign,
        "role": other,
        "pool": pool,
    }


@pytest.fixture
def mia(client: Client, tree: dict[str, Any]) -> User:
    user = User.objects.create(username="mia")
    Membership.objects.create(user=user, scope=tree["dept"], role="manager")
    client.force_login(user)
    return user


def parents(*rows: Scope) -> dict[str, Any]:
    data: dict[str, Any] = {"parent_edges-TOTAL_FORMS": len(rows), "parent_edges-INITIAL_FORMS": 0}
    return NO_QUOTAS | data | {f"parent_edges-{place}-parent": row.pk for place, row in enumerate(rows)}


def test_he_finds_scopes_quotas_and_roles_and_nothing_else(client: Client, mia: User) -> None:
    models = client.get(reverse("admin:index")).context["app_list"]
    assert {row["object_name"] for app in models for row in app["models"]} == {"CapacityQuota", "Membership", "Scope"}
    for kind in ("quotas/user", "quotas/pool", "capacity/pool", "capacity/languagemodel", "quotas/scopeedge"):
        assert client.get(f"/admin/{kind}/").status_code in {403, 404}


def test_viewers_have_no_admin(client: Client, tree: dict[str, Any]) -> None:
    user = User.objects.create(username="vera")
    Membership.objects.create(user=user, scope=tree["dept"])
    client.force_login(user)
    assert client.get(list_of(Scope)).status_code == 302
    assert client.get("/admin/login/").status_code == 403


def test_he_makes_a_scope_with_a_quota_below_his_own(client: Client, mia: User, tree: dict[str, Any]) -> None:
    quota = {"quotas-TOTAL_FORMS": 1, "quotas-0-pool": tree["pool"].pk, "quotas-0-target": "sim", "quotas-0-weight": 1}
    quota |= {"quotas-0-limit": 3, "quotas-0-lend": "on"}
    answer = client.post(add_page_of(Scope), {"name": "new", "reason": "why"} | parents(tree["team"]) | quota)
    assert answer.status_code == 302
    new = Scope.objects.get(name="new")
    assert (new.history.first().history_user, new.quotas.get().limit) == (mia, 3)
    assert list(new.parents.all()) == [tree["team"]]


def test_a_limit_beyond_his_own_is_an_error_at_the_field(client: Client, mia: User, tree: dict[str, Any]) -> None:
    data = {"scope": tree["team"].pk, "pool": tree["pool"].pk, "target": "sim", "weight": 1, "lend": "on"}
    assert "at most 8 of sim" in errors_of(client.post(add_page_of(CapacityQuota), data | {"limit": 9}))
    assert "beyond its own 4" in errors_of(client.post(add_page_of(CapacityQuota), data | {"guarantee": 5}))
    assert client.post(add_page_of(CapacityQuota), data | {"limit": 8, "guarantee": 4}).status_code == 302


def test_a_scope_without_a_parent_or_under_a_foreign_one_is_an_error(client: Client, mia: User, tree: dict[str, Any]) -> None:
    assert "Name a parent" in errors_of(client.post(add_page_of(Scope), {"name": "new"} | parents()))
    foreign = errors_of(client.post(add_page_of(Scope), {"name": "new"} | parents(tree["rival"])))
    unknown = errors_of(client.post(add_page_of(Scope), {"name": "new"} | parents(Scope(pk=999_999))))
    assert foreign == unknown != ""


def test_his_own_scope_is_shown_and_not_edited(client: Client, mia: User, tree: dict[str, Any]) -> None:
    page = client.get(page_of(tree["dept"]))
    assert page.status_code == 200
    assert b"_save" not in page.content
    assert client.post(page_of(tree["dept"]), {"name": "mine"} | parents(tree["team"])).status_code == 403
    assert client.post(page_of(tree["dept"]).replace("change", "delete"), {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [tree["dept"].pk], "post": "yes"}
    assert client.post(list_of(Scope), chosen).status_code == 403
    assert Scope.objects.filter(name="dept").exists()


def test_one_that_also_stands_elsewhere_keeps_its_unseen_parent(client: Client, mia: User, tree: dict[str, Any]) -> None:
    data = form_data(client.get(page_of(tree["shared"])))
    assert client.post(page_of(tree["shared"]), data | {"name": "common"}).status_code == 302
    stored = ScopeEdge.objects.filter(child=tree["shared"]).values_list("parent__name", flat=True)
    assert list(stored) == ["canary-rival", "dept"]
    assert client.post(page_of(tree["shared"]).replace("change", "delete"), {"post": "yes"}).status_code == 403
    assert Scope.objects.filter(name="common").exists()


def test_he_gives_a_role_to_an_account_that_he_names(client: Client, mia: User, tree: dict[str, Any]) -> None:
    vera = User.objects.create(username="vera")
    page = add_page_of(Membership)
    assert "no account of that name" in errors_of(
        client.post(page, {"user": "nobody", "scope": tree["team"].pk, "role": "viewer"})
    )
    assert client.post(page, {"user": "vera", "scope": tree["team"].pk, "role": "viewer"}).status_code == 302
    made = Membership.objects.get(user=vera)
    assert client.post(page_of(made), form_data(client.get(page_of(made))) | {"role": "manager"}).status_code == 302
    assert client.post(page, {"user": "mia", "scope": tree["team"].pk, "role": "manager"}).status_code == 403
    assert client.post(page_of(Membership.objects.get(user=mia)), {"role": "viewer"}).status_code == 403
    assert client.post(page_of(made).replace("change", "delete"), {"post": "yes"}).status_code == 302
    assert not Membership.objects.filter(user=vera).exists()


def autocomplete(kind: str, field: str) -> str:
    return f"{reverse('admin:autocomplete')}?app_label=quotas&model_name={kind}&field_name={field}&term="


def test_no_list_form_choice_or_history_names_what_is_foreign(client: Client, mia: User, tree: dict[str, Any]) -> None:
    moved = CapacityQuota(scope=tree["rival"], pool=tree["pool"], target="sim/m", limit=1)
    services.quota_save(moved, actor=None, reason="canary-reason")
    moved.scope = tree["team"]
    services.quota_save(moved, actor=None)
    kinds = (Scope, CapacityQuota, Membership)
    pages = [reverse("admin:index"), "/admin/quotas/", *map(list_of, kinds), *map(add_page_of, kinds)]
    pages += [f"{list_of(kind)}?q=anar" for kind in kinds]
    pages += [page_of(row) for row in (tree["dept"], tree["team"], tree["shared"], moved)]
    pages += [page_of(row).replace("change", word) for row in (tree["shared"], moved) for word in ("history", "delete")]
    pages += [page_of(moved).replace("change", f"history/{row.pk}") for row in moved.history.all()]
    pages += [autocomplete("scopeedge", "parent"), autocomplete("capacityquota", "scope"), autocomplete("capacityquota", "pool")]
    pages += [autocomplete("membership", "user"), autocomplete("membership", "scope")]
    texts = {page: client.get(page).content.decode() for page in pages}
    leaks = {page: text[text.index("canary") - 80 :][:200] for page, text in texts.items() if "canary" in text}
    assert leaks == {}


@pytest.mark.parametrize("key", ["org", "rival", "quota", "role"])
def test_a_foreign_row_is_as_one_that_does_not_exist(client: Client, mia: User, tree: dict[str, Any], key: str) -> None:
    row = tree[key]
    for word in ("change", "delete", "history"):
        page = page_of(row).replace("change", word)
        found, none = (client.get(page.replace(f"/{row.pk}/", f"/{pk}/")) for pk in (row.pk, 999_999))
        assert (found.status_code, found.get("Location")) == (none.status_code, none.get("Location"))
        assert found.status_code in {302, 404}
        assert client.post(page, {"post": "yes"}).status_code in {302, 403, 404, 405}
    assert type(row).objects.filter(pk=row.pk).exists()


def test_an_operator_sees_scopes_and_quotas_and_no_roles(client: Client, tree: dict[str, Any]) -> None:
    client.force_login(User.objects.create(username="olga", is_operator=True))
    assert [client.get(list_of(kind)).status_code for kind in (Scope, CapacityQuota, Membership)] == [200, 200, 403]
    assert client.post(page_of(tree["team"]), {"name": "x"} | parents(tree["dept"])).status_code == 403


def test_the_tenants_page_leads_to_what_he_edits(client: Client, mia: User, tree: dict[str, Any]) -> None:
    text = client.get(reverse("tenants")).content.decode()
    edits = {row.name for row in Scope.objects.all() if page_of(row) in text}
    assert edits == {"team", "shared"}
    assert add_page_of(Scope) in text
    assert "canary" not in text
