"""`manage.py endpoint_remove NAME`: forgets a registered engine, which runs on."""

from __future__ import annotations

import json
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from capacity import services
from capacity.models import Replica
from quotas.command import OperatorCommand, needed
from quotas.forms import sentences


class Command(OperatorCommand):
    help = "Forgets a registered engine: no longer counted nor routed to. It is not stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="Its name here, as the model's page lists it.")
        parser.add_argument("--reason", required=True, help="Why; kept in the history.")
        parser.add_argument("--json", action="store_true", dest="as_json", help="Print an object: name, state.")

    def handle(self, *, name: str, reason: str, as_json: bool, **options: Any) -> None:
        engine = Replica.objects.filter(name=name).first()
        if engine is None:
            raise CommandError(f"There is no engine “{name}”.")
        try:
            services.endpoint_remove(engine, actor=None, reason=needed(reason))
        except ValidationError as error:
            raise CommandError(" ".join(sentences(error))) from error
        said = json.dumps({"name": name, "state": "gone"}, ensure_ascii=False) if as_json else f"{name} is forgotten; it runs on."
        self.stdout.write(said)
