"""`manage.py measurement_accept ID --reason …`: an outdated measurement is good again, for the profile as it is now."""

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
    help = "Takes an outdated measurement for the profile as it is now: it counts for removals again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("measurement", type=int, metavar="ID")
        parser.add_argument("--reason", default="", help="Why; kept in the history.")
        parser.add_argument("--json", action="store_true", dest="as_json", help="As one JSON document.")

    def handle(self, *args: Any, **options: Any) -> None:
        found = Measurement.objects.select_related("profile__model__slo", "slo").filter(pk=options["measurement"]).first()
        if found is None:
            raise CommandError(f"There is no measurement {options['measurement']}.")
        try:
            services.measurement_accept(found, actor=None, reason=needed(options["reason"]))
        except ValidationError as error:
            raise CommandError(" ".join(sentences(error))) from error
        words = f"Measurement {found.pk} of {found.profile} is {found.get_status_display().lower()} again."
        self.stdout.write(json.dumps({"id": found.pk, "status": found.status}) if options["as_json"] else words)
