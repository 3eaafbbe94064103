"""Who enters the admin, how people and service accounts are edited there, and how tokens are made."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from capacity.tests.admin_pages import add_page_of, errors_of, form_data, list_of, page_of
from capacity.tests.factories import make_scope
from quotas import services
from quotas.models import CapacityQuota, Membership, Scope, User

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


# --- who enters ---------------------------------------------------------------------------------------------------
def test_a_stranger_signs_in_on_the_sites_own_page(client: Client) -> None:
    response = client.get(reverse("admin:login"), {"next": "/admin/quotas/scope/"})
    assert response.url == "/login/?next=%2Fadmin%2Fquotas%2Fscope%2F"
    assert client.get("/admin/", follow=True).redirect_chain[-1] == ("/login/?next=%2Fadmin%2F", 302)


@pytest.mark.parametrize("fields", [{}, {"is_staff": True}, {"is_service": True}])
def test_someone_who_is_neither_operator_nor_admin_does_not_enter(client: Client, fields: dict[str, bool]) -> None:
    client.force_login(User.objects.create_user("bob", **fields))
    assert client.get("/admin/", follow=True).status_code == 403


def test_an_operator_sees_quotas_and_cannot_edit_them(client: Client, operator: User) -> None:
    team = make_scope("team")
    client.force_login(operator)
    assert client.get(list_of(Scope)).status_code == 200
    assert client.get(page_of(team)).status_code == 200
    assert client.post(page_of(team), {"name": "mine"}).status_code == 403
    assert client.get(add_page_of(CapacityQuota)).status_code == 403
    assert Scope.objects.get().name == "team"


@pytest.mark.parametrize("kind", [User, Membership, AuthToken])
def test_an_operator_sees_no_people_and_no_tokens(client: Client, operator: User, kind: Any) -> None:
    client.force_login(operator)
    assert client.get(list_of(kind)).status_code == 403


def test_every_kind_of_row_has_a_list_and_a_form_that_open(client: Client, root: User) -> None:
    for kind, row_admin in admin.site._registry.items():
        assert client.get(list_of(kind), {"q": "a"}).status_code == 200, kind
        if row_admin.has_add_permission(client.get("/admin/").wsgi_request):
            assert client.get(add_page_of(kind)).status_code == 200, kind


# --- people -------------------------------------------------------------------------------------------------------
def test_a_service_account_has_no_password(client: Client, root: User) -> None:
    data = {"username": "gateway", "is_service": "on", "usable_password": "true", "password1": "p4ssw0rd-long"}
    data |= {"password2": "p4ssw0rd-long", "memberships-TOTAL_FORMS": 0, "memberships-INITIAL_FORMS": 0}
    assert client.post(add_page_of(User), data).status_code == 302
    assert not User.objects.get(username="gateway").has_usable_password()


def test_the_last_admin_stays_one(client: Client, root: User) -> None:
    data = form_data(client.get(page_of(root)))
    del data["is_superuser"]
    response = client.post(page_of(root), data)
    assert "last admin" in response.context["adminform"].form.errors["is_superuser"][0]
    url = page_of(root).replace("change", "delete")
    assert "last admin" in client.get(url).content.decode()


def test_a_person_is_made_an_operator_and_a_member(client: Client, root: User) -> None:
    bob, team = User.objects.create_user("bob"), make_scope("team")
    data = form_data(client.get(page_of(bob))) | {"is_operator": "on", "memberships-TOTAL_FORMS": 1}
    data |= {"memberships-0-scope": team.pk, "memberships-0-role": "manager", "memberships-0-user": bob.pk}
    assert client.post(page_of(bob), data).status_code == 302
    bob.refresh_from_db()
    assert (bob.is_operator, bob.memberships.get().role) == (True, "manager")
    assert Membership.history.get().history_user == root


def test_a_stale_form_of_a_person_is_refused(client: Client, root: User) -> None:
    bob = User.objects.create_user("bob")
    data = form_data(client.get(page_of(bob))) | {"first_name": "Bob"}
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert "changed while you were editing" in errors_of(client.post(page_of(bob), data))


def test_a_password_is_changed_on_a_form_of_its_own(client: Client, root: User) -> None:
    bob = User.objects.create_user("bob", password="an old password")
    url = reverse("admin:auth_user_password_change", args=[bob.pk])
    data = {"password1": "a n3w password", "password2": "a n3w password", "usable_password": "true"}
    assert client.post(url, data).status_code == 302
    bob.refresh_from_db()
    assert bob.check_password("a n3w password")


# --- tokens -------------------------------------------------------------------------------------------------------
def test_a_token_is_printed_once_and_stored_as_a_hash(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("token_create", "gateway", service=True, days=7)
    token = capsys.readouterr().out.strip()
    row = AuthToken.objects.get()
    assert token not in (row.digest, row.token_key)
    assert timedelta(days=6) < row.expiry - row.created < timedelta(days=8)
    assert User.objects.get(username="gateway").is_service


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobody"], "There is no user nobody"),
        (["bob", "--service"], "bob is a person"),
        (["bob", "--days", "0"], "lasts 1 to 366 days"),
    ],
)
def test_a_token_that_cannot_be_made_says_why(arguments: list[str], said: str) -> None:
    User.objects.create_user("bob")
    with pytest.raises(CommandError, match=said):
        call_command("token_create", *arguments)
    assert not AuthToken.objects.exists()


def test_the_admin_shows_no_token(client: Client, root: User) -> None:
    token = services.token_create(root, days=1)
    row = AuthToken.objects.get()
    for url in (list_of(AuthToken), page_of(row)):
        text = client.get(url).content.decode()
        assert token not in text
        assert row.digest not in text.replace(page_of(row), "").replace(row.pk, "")
    assert client.get(add_page_of(AuthToken)).status_code == 403
