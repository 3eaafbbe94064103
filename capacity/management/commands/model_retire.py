"""`manage.py model_retire MODEL --reason …`: switches a model off, after a look at who uses it."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder

from capacity import services
from capacity.briefings.retirement import sentences_of, use_of
from capacity.models import LanguageModel
from quotas.command import OperatorCommand, needed


class Command(OperatorCommand):
    help = "Switches a model off (minimum and maximum 0). --preview shows who uses it, and changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("model")
        parser.add_argument("--reason", default="", help="Why; kept in the history. Needed unless --preview.")
        parser.add_argument("--preview", action="store_true", help="Show, and change nothing.")
        parser.add_argument("--json", action="store_true", dest="as_json", help="As one JSON document.")

    def handle(self, *, model: str, reason: str, preview: bool, as_json: bool, **options: Any) -> None:
        found = LanguageModel.objects.select_related("pool", "scope").filter(name=model).first()
        if found is None:
            raise CommandError(f"There is no model “{model}”.")
        now = datetime.now(UTC)
        use = use_of(found, now)
        if not preview:
            try:
                services.model_retire(found, actor=None, reason=needed(reason))
            except ValidationError as error:
                raise CommandError(" ".join(error.messages)) from None
        if as_json:
            self.stdout.write(json.dumps({**asdict(use), "preview": preview}, cls=DjangoJSONEncoder, ensure_ascii=False))
        else:
            done = [] if preview else [f"{found} is off: nothing is started for it, and what runs is drained."]
            self.stdout.write("\n".join([*sentences_of(use, now), *done]))
