"""`manage.py model_replacing MODEL --pause|--resume --reason …`: whether its outdated replicas are replaced."""

from __future__ import annotations

import json
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from capacity import services
from capacity.models import LanguageModel
from capacity.outdated import outdated_of
from quotas.command import OperatorCommand, needed


class Command(OperatorCommand):
    help = "Pauses the replacing of a model's outdated replicas, or lets it go on; without either it says how it stands."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("model")
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--pause", action="store_true", help="Outdated replicas stay.")
        which.add_argument("--resume", action="store_true", help="They are replaced, one at a time.")
        parser.add_argument("--reason", default="", help="Why; kept in the history. Needed with --pause and --resume.")
        parser.add_argument("--json", action="store_true", dest="as_json", help="As one JSON document.")

    def handle(self, *, model: str, pause: bool, resume: bool, reason: str, as_json: bool, **options: Any) -> None:
        found = LanguageModel.objects.filter(name=model).first()
        if found is None:
            raise CommandError(f"There is no model “{model}”.")
        if pause or resume:
            self.switch(found, pause, needed(reason))
        now = outdated_of(found)
        names = [replica.name for replica in now.replicas]
        told = f"{found}: {now.sentence or 'no replica is outdated'}."
        self.stdout.write(json.dumps({"model": found.name, "outdated": names, "paused": now.is_paused}) if as_json else told)

    def switch(self, model: LanguageModel, paused: bool, reason: str) -> None:
        try:
            services.model_replacing(model, paused, actor=None, reason=reason)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
