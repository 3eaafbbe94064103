"""People who call the API in tests: each a client with a token of its own."""

from __future__ import annotations

from typing import Any

from knox.models import AuthToken
from rest_framework.test import APIClient

from quotas.models import Membership, Scope, User


def client_of(user: User) -> APIClient:
    """A client that sends a fresh token; answers of 500 stay answers."""
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {AuthToken.objects.create(user)[1]}")
    client.user = user
    return client


def person(name: str, **fields: Any) -> APIClient:
    return client_of(User.objects.create(username=name, **fields))


def member(name: str, scope: Scope, role: str = Membership.Role.VIEWER) -> APIClient:
    client = person(name)
    Membership.objects.create(user=client.user, scope=scope, role=role)
    return client
