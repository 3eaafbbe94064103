"""`manage.py measurement_accept ID --reason …`: a measurement is put in force, for the profile as it is now."""

from __future__ import annotations

import json
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from capacity import services
from capacity.models import Measurement
from quotas.command import OperatorCommand, needed
from quotas.forms import sentences


class Command(OperatorCommand):
    help = "Puts a measurement in force for the profile as it is now: it counts for removals too."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("measurement", type=int, metavar="ID")
        parser.add_argument("--reason", default="", help="Why; kept in the history.")
        parser.add_argument("--preview", action="store_true", help="Say what it would take the place of, and change nothing.")
        parser.add_argument("--json", action="store_true", dest="as_json", help="As one JSON document.")

    def handle(self, *args: Any, **options: Any) -> None:
        found = Measurement.objects.select_related("profile__model__slo", "slo").filter(pk=options["measurement"]).first()
        if found is None:
            raise CommandError(f"There is no measurement {options['measurement']}.")
        try:
            told = services.acceptance(found) if options["preview"] else self.accept(found, options["reason"])
        except ValidationError as error:
            raise CommandError(" ".join(sentences(error))) from error
        words = "" if options["preview"] else f"Measurement {found.pk} of {found.profile} is in force."
        document = {"id": found.pk, "status": found.status, "preview": options["preview"], "warnings": told}
        self.stdout.write(json.dumps(document) if options["as_json"] else "\n".join(filter(None, [*told, words])))

    def accept(self, found: Measurement, reason: str) -> list[str]:
        return services.measurement_accept(found, actor=None, reason=needed(reason))
