"""`manage.py token_create USERNAME`: prints a new API token, once."""

from __future__ import annotations

import json
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from quotas.command import OperatorCommand
from quotas.forms import sentences
from quotas.models import User
from quotas.services import service_account, token_create


class Command(OperatorCommand):
    help = "Prints a new API token of a user. It is shown this once: only its hash is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--days", type=int, default=90, help="How long it is valid (1 to 366; 90).")
        parser.add_argument("--service", action="store_true", help="Make a service account of that name where there is none.")
        parser.add_argument("--json", action="store_true", dest="as_json", help="Print an object with username, days and token.")

    def handle(self, *, username: str, days: int, service: bool, as_json: bool, **options: Any) -> None:
        try:
            user = service_account(username) if service else existing(username)
            token = token_create(user, days=days)
        except ValidationError as error:
            raise CommandError(" ".join(sentences(error))) from error
        said = json.dumps({"username": username, "days": days, "token": token}) if as_json else token
        self.stdout.write(said)


def existing(username: str) -> User:
    user = User.objects.filter(username=username).first()
    if user is None:
        raise ValidationError({"username": f"There is no user {username}; --service makes a service account."})
    return user
