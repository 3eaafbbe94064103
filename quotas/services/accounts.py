"""Edits of people, service accounts, their tokens and their places in the graph."""

from __future__ import annotations

from datetime import timedelta

from django.core.exceptions import ValidationError
from knox.models import get_token_model

from ..models import User
from . import rows
from .rows import Findings, delete_rule_for, rule_for

LONGEST_TOKEN_DAYS = 366


def user_save(user: User, *, actor: User | None, reason: str = "") -> list[str]:
    """Writes an account. A service account has no password and loses one that it had."""
    if user.is_service and (not user.password or user.has_usable_password()):
        user.set_unusable_password()
    return rows.save(user, actor=actor, reason=reason)


def user_delete(user: User, *, actor: User | None, reason: str = "") -> None:
    """Deletes an account with its tokens and memberships; the last admin stays."""
    rows.delete(user, actor=actor, reason=reason)


def service_account(username: str, *, actor: User | None = None) -> User:
    """The service account of that name, made where there is none; refused where a person has it."""
    user = User.objects.filter(username=username).first()
    if user is not None and not user.is_service:
        raise ValidationError({"username": f"{username} is a person, not a service account."})
    if user is None:
        user = User(username=username, is_service=True)
        user_save(user, actor=actor)
    return user


def token_create(user: User, *, days: int) -> str:
    """A new API token of the user, valid for so many days. Only its hash is stored: this is the one time to read it."""
    if not 1 <= days <= LONGEST_TOKEN_DAYS:
        raise ValidationError({"days": f"A token lasts 1 to {LONGEST_TOKEN_DAYS} days, not {days}."})
    if not user.is_active:
        raise ValidationError({"username": f"{user} is not active."})
    _, token = get_token_model().objects.create(user=user, expiry=timedelta(days=days))
    return str(token)


@rule_for(User)
def keep_an_admin(user: User, stored: User | None, findings: Findings) -> None:
    loses = stored is not None and _is_admin(stored) and not _is_admin(user)
    if loses and not _other_admins(user):
        findings.refuse("is_superuser", f"{user} is the last admin; make another one first.")


@delete_rule_for(User)
def keep_an_admin_on_delete(user: User, findings: Findings) -> None:
    if _is_admin(user) and not _other_admins(user):
        findings.refuse("__all__", f"{user} is the last admin; make another one first.")


def _is_admin(user: User) -> bool:
    return user.is_active and user.is_superuser


def _other_admins(user: User) -> bool:
    return User.objects.filter(is_active=True, is_superuser=True).exclude(pk=user.pk).exists()
