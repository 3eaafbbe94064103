"""The admin asks why, shows refusals of scopes and quotas at their field, and never writes over somebody else's edit."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from capacity.tests.admin_pages import add_page_of, errors_of, form_data, list_of, page_of
from capacity.tests.factories import make_model, make_pool, make_scope
from quotas import services
from quotas.models import CapacityQuota, Membership, Pool, Scope, ScopeEdge, User

pytestmark = pytest.mark.django_db
HOSTILE = '"><img src=x onerror=alert(1)>'


@pytest.fixture
def root(client: Client) -> User:
    user = User.objects.create_superuser("root", password="a long password")
    client.force_login(user)
    return user


@pytest.fixture
def operator() -> User:
    return User.objects.create_user("olga", is_operator=True)


# --- scopes -------------------------------------------------------------------------------------------------------
def test_an_unchanged_form_writes_no_history(client: Client, root: User) -> None:
    org, pool = make_scope("org"), make_pool()
    team = make_scope("team", org, funding=org)
    CapacityQuota.objects.create(scope=team, pool=pool, target="sim", limit=4)
    before = (services.revision(), Scope.history.count(), ScopeEdge.history.count(), CapacityQuota.history.count())
    response = client.post(page_of(team), form_data(client.get(page_of(team))))
    assert response.status_code == 302
    after = (services.revision(), Scope.history.count(), ScopeEdge.history.count(), CapacityQuota.history.count())
    assert after == before


def test_an_edit_stands_in_the_history_with_its_reason(client: Client, root: User) -> None:
    team = make_scope("team")
    data = form_data(client.get(page_of(team))) | {"name": "crew", "reason": "they wanted it"}
    assert client.post(page_of(team), data).status_code == 302
    entry = team.history.first()
    assert (entry.name, entry.history_user, entry.history_change_reason) == ("crew", root, "they wanted it")
    assert "they wanted it" in client.get(page_of(team).replace("change", "history")).content.decode()


def edges(*rows: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {"quotas-TOTAL_FORMS": 0, "quotas-INITIAL_FORMS": 0}
    data |= {"parent_edges-TOTAL_FORMS": len(rows), "parent_edges-INITIAL_FORMS": 0}
    return data | {f"parent_edges-{number}-{key}": value for number, row in enumerate(rows) for key, value in row.items()}


def test_a_new_scope_gets_its_parents_and_the_funding_one(client: Client, root: User) -> None:
    a, b = make_scope("a"), make_scope("b")
    data = {"name": "team"} | edges({"parent": a.pk}, {"parent": b.pk, "is_funding": "on"})
    assert client.post(add_page_of(Scope), data).status_code == 302
    rows = Scope.objects.get(name="team").parent_edges.values_list("parent__name", "is_funding")
    assert list(rows) == [("a", False), ("b", True)]


def test_a_cycle_is_an_error_of_the_form_that_names_the_path(client: Client, root: User) -> None:
    org = make_scope("org")
    team = make_scope("team", org)
    data = form_data(client.get(page_of(org))) | edges({"parent": team.pk, "child": org.pk})
    assert "cycle: org → team → org" in errors_of(client.post(page_of(org), data))
    assert not org.parent_edges.exists()


def test_two_funding_parents_are_an_error_of_the_form(client: Client, root: User) -> None:
    rows = [{"parent": make_scope(name).pk, "is_funding": "on"} for name in "ab"]
    assert "one funding parent: a and b" in errors_of(client.post(add_page_of(Scope), {"name": "team"} | edges(*rows)))


def test_a_parent_named_twice_is_an_error_of_the_form(client: Client, root: User) -> None:
    org = make_scope("org")
    data = {"name": "team"} | edges({"parent": org.pk}, {"parent": org.pk})
    assert "named twice" in errors_of(client.post(add_page_of(Scope), data))


def test_the_funding_mark_moves_in_one_save(client: Client, root: User) -> None:
    a, b = make_scope("a"), make_scope("b")
    team = make_scope("team", a, b, funding=a)
    data = form_data(client.get(page_of(team)))
    del data["parent_edges-0-is_funding"]
    data["parent_edges-1-is_funding"] = "on"
    assert client.post(page_of(team), data).status_code == 302
    assert team.parent_edges.get(is_funding=True).parent == b


def test_a_stale_form_is_refused_and_says_who_came_first(client: Client, root: User, operator: User) -> None:
    team = make_scope("team")
    data = form_data(client.get(page_of(team))) | {"name": "crew"}
    team.name = "squad"
    services.scope_save(team, actor=operator)
    said = errors_of(client.post(page_of(team), data))
    assert "changed while you were editing it, last by olga" in said
    assert Scope.objects.get().name == "squad"


def test_an_edit_of_a_scopes_quota_makes_its_form_stale(client: Client, root: User) -> None:
    team = make_scope("team")
    data = form_data(client.get(page_of(team))) | {"name": "crew"}
    services.quota_save(CapacityQuota(scope=team, pool=make_pool(), target="sim", limit=1), actor=None)
    assert "changed while you were editing" in errors_of(client.post(page_of(team), data))


def test_a_scope_with_children_is_not_deleted_and_the_page_says_why(client: Client, root: User) -> None:
    org = make_scope("org")
    make_scope("team", org)
    url = page_of(org).replace("change", "delete")
    assert "org has children: team" in client.get(url).content.decode()
    assert client.post(url, {"post": "yes"}).status_code in (200, 302, 403)
    assert Scope.objects.filter(name="org").exists()


def test_a_scope_with_models_is_not_deleted_and_the_page_names_them(client: Client, root: User) -> None:
    org = make_scope("org")
    make_model("llama", scope=org)
    url = page_of(org).replace("change", "delete")
    for response in (client.get(url), client.post(url, {"post": "yes"}, follow=True)):
        assert "org owns models: llama" in response.content.decode()
    assert Scope.objects.filter(name="org").exists()


def test_a_deletion_stands_in_the_history_with_its_reason(client: Client, root: User) -> None:
    team = make_scope("team")
    client.post(page_of(team).replace("change", "delete"), {"post": "yes", "reason": "customer left"})
    entry = Scope.history.get(history_type="-")
    assert (entry.history_user, entry.history_change_reason) == (root, "customer left")


def bulk(kind: Any, rows: list[Any]) -> dict[str, Any]:
    return {"action": "delete_selected", "_selected_action": [row.pk for row in rows], "post": "yes", "reason": "tidy"}


def test_a_bulk_deletion_goes_through_the_services(client: Client, root: User) -> None:
    rows = [make_scope() for _ in range(3)]
    page = client.post(list_of(Scope), bulk(Scope, rows) | {"post": ""})
    assert "<strong>3</strong> scopes" in page.content.decode()
    client.post(list_of(Scope), bulk(Scope, rows))
    assert not Scope.objects.exists()
    assert set(Scope.history.filter(history_type="-").values_list("history_change_reason", flat=True)) == {"tidy"}


def test_a_bulk_deletion_is_all_or_nothing(client: Client, root: User) -> None:
    free, needed = make_scope("free"), make_scope("needed")
    make_model("llama", scope=needed)
    response = client.post(list_of(Scope), bulk(Scope, [free, needed]))
    assert "needed owns models: llama" in response.content.decode()
    assert Scope.objects.count() == 2


def test_a_refusal_that_comes_only_while_rows_are_deleted_undoes_all(client: Client, root: User) -> None:
    """A parent is free of children only after them: by name it is deleted first."""
    a_parent = make_scope("a")
    child = make_scope("b", a_parent)
    others = [make_scope("c")]
    response = client.post(list_of(Scope), bulk(Scope, [a_parent, child, *others]), follow=True)
    assert "a has children: b" in response.content.decode()
    assert Scope.objects.count() == 3


# --- quotas -------------------------------------------------------------------------------------------------------
def quota_data(pool: Pool, **fields: Any) -> dict[str, Any]:
    return {"scope": make_scope().pk, "pool": pool.pk, "target": "sim", "weight": 1, "lend": "on"} | fields


def test_a_limit_below_the_guarantee_is_shown_at_the_limit(client: Client, root: User) -> None:
    response = client.post(add_page_of(CapacityQuota), quota_data(make_pool(), guarantee=8, limit=5))
    assert response.context["adminform"].form.errors["limit"] == ["The limit is below the guarantee (limit 5, guarantee 8)."]


@pytest.mark.parametrize("value", ["-1", "1.5", "1000000000001", "many"])
def test_what_is_no_whole_number_is_shown_at_its_field(client: Client, root: User, value: str) -> None:
    response = client.post(add_page_of(CapacityQuota), quota_data(make_pool(), limit=value))
    assert list(response.context["adminform"].form.errors) == ["limit"]


def test_an_unknown_model_is_shown_at_the_target(client: Client, root: User) -> None:
    response = client.post(add_page_of(CapacityQuota), quota_data(make_pool(), target="model:none", limit=1))
    assert "has no model “none”" in response.context["adminform"].form.errors["target"][0]


def test_a_warning_is_said_after_the_save(client: Client, root: User) -> None:
    response = client.post(add_page_of(CapacityQuota), quota_data(make_pool(), guarantee=8), follow=True)
    assert "the guarantee is for nothing yet" in response.content.decode()
    assert CapacityQuota.objects.get().guarantee == 8


# --- lists --------------------------------------------------------------------------------------------------------
def fill(number: int) -> None:
    pool = make_pool()
    for _ in range(number):
        team = make_scope(None, make_scope())
        CapacityQuota.objects.create(scope=team, pool=pool, target="sim", limit=4)
        Membership.objects.create(user=User.objects.create_user(team.name), scope=team)


@pytest.mark.parametrize("kind", [Scope, ScopeEdge, CapacityQuota, Membership, User])
def test_a_list_of_50_rows_takes_as_many_queries_as_one_of_5(
    client: Client, root: User, kind: Any, django_assert_max_num_queries: Any
) -> None:
    fill(5)
    client.get(list_of(kind))
    with django_assert_max_num_queries(1000) as few:
        client.get(list_of(kind))
    fill(50)
    with django_assert_max_num_queries(len(few)):
        assert client.get(list_of(kind)).status_code == 200


def test_a_scope_with_50_quotas_takes_as_many_queries_as_one_with_5(
    client: Client, root: User, django_assert_max_num_queries: Any
) -> None:
    team, pool = make_scope(None, make_scope()), make_pool()
    CapacityQuota.objects.bulk_create(CapacityQuota(scope=team, pool=pool, target=f"c{n}") for n in range(5))
    client.get(page_of(team))
    with django_assert_max_num_queries(1000) as few:
        client.get(page_of(team))
    CapacityQuota.objects.bulk_create(CapacityQuota(scope=team, pool=pool, target=f"d{n}") for n in range(45))
    # the choice of a pool is drawn once a row, by primary key
    with django_assert_max_num_queries(len(few) + 45):
        assert client.get(page_of(team)).status_code == 200


def test_a_hostile_name_is_text_everywhere(client: Client, root: User) -> None:
    bad = make_scope(HOSTILE)
    make_scope("child", bad)
    pages = [
        list_of(Scope),
        page_of(bad),
        page_of(bad).replace("change", "history"),
        page_of(bad).replace("change", "delete"),
        list_of(ScopeEdge),
    ]
    for url in pages:
        text = client.get(url).content.decode()
        assert "<img src=x" not in text, url
        assert "onerror" in text, url
