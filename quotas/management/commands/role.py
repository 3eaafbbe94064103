"""`manage.py role USERNAME SCOPE ROLE --reason …`: who sees and edits what, by scope."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from quotas import services
from quotas.command import OperatorCommand, needed, wrong_call
from quotas.forms import sentences
from quotas.models import Membership, Scope, User

NONE = "none"


class Command(OperatorCommand):
    help = "Makes a person viewer or manager of a scope, or takes the role away; without a role it lists those that there are."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("scope", nargs="?")
        parser.add_argument("role", nargs="?", choices=[*Membership.Role.values, NONE])
        parser.add_argument("--reason", default="", help="Why; kept in the history. Needed with a role.")
        parser.add_argument("--json", action="store_true", dest="as_json", help="As one JSON document.")

    def handle(self, *, username: str, scope: str | None, role: str | None, reason: str, as_json: bool, **options: Any) -> None:
        user = _found(User.objects.filter(username=username).first(), f"There is no account “{username}”.")
        if scope is not None:
            if role is None:
                raise wrong_call(f"Say which role: {', '.join([*Membership.Role.values, NONE])}.")
            place = _found(Scope.objects.filter(name=scope).first(), f"There is no scope “{scope}”.")
            self.give(user, place, role, needed(reason))
        held = list(user.memberships.select_related("scope").order_by("scope__name"))
        told = [{"scope": row.scope.name, "role": row.role} for row in held]
        self.stdout.write(json.dumps({"user": user.username, "roles": told}) if as_json else _said(user, held))

    def give(self, user: User, scope: Scope, role: str, reason: str) -> None:
        row = Membership.objects.filter(user=user, scope=scope).first() or Membership(user=user, scope=scope)
        try:
            if role != NONE:
                row.role = role
                services.save(row, actor=None, reason=reason)
            elif row.pk is None:
                raise CommandError(f"{user} has no role in {scope}.")
            else:
                services.delete(row, actor=None, reason=reason)
        except ValidationError as error:
            raise CommandError(" ".join(sentences(error))) from error


def _found(row: Any, sentence: str) -> Any:
    if row is None:
        raise CommandError(sentence)
    return row


def _said(user: User, held: Iterable[Membership]) -> str:
    everything = ["admin"] if user.is_superuser else ["operator"] if user.is_operator else []
    rows = [*everything, *(f"{row.role} of {row.scope}" for row in held)]
    return f"{user}: {', '.join(rows) or 'no role'}."
