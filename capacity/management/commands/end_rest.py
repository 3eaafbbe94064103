"""Lets removals of a model go on before the rest that followed a failed removal is over."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from capacity import services
from capacity.models import LanguageModel
from quotas.command import OperatorCommand, needed


class Command(OperatorCommand):
    help = "Ends the rest of a model's removals that followed a removal after which it missed its SLO."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("model")
        parser.add_argument("--reason", default="", help="Why; kept in the history.")
        parser.add_argument("--json", action="store_true", help="As one JSON document.")

    def handle(self, *args: Any, **options: Any) -> None:
        model = LanguageModel.objects.filter(name=options["model"]).first()
        if model is None:
            raise CommandError(f"There is no model “{options['model']}”.")
        try:
            services.end_rest(model, actor=None, reason=needed(options["reason"]), now=datetime.now(UTC))
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        done = {"model": model.name, "removals_rest_until": None}
        self.stdout.write(json.dumps(done) if options["json"] else f"Removals of {model.name} may go on.")
