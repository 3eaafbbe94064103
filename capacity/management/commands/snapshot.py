"""Prints the live fleet's snapshot. Touches nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser

from capacity.models import Lease
from capacity.snapshot import live_document
from quotas.command import OperatorCommand, wrong_call
from quotas.models import Pool


class Command(OperatorCommand):
    help = "Prints the live fleet's snapshot (llmgw.snapshot/1) as JSON: `manage.py snapshot --pool NAME | manage.py plan -`."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pool", help="The pool's name; needed where there are several.")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["pool"] or only_pool()
        try:
            document = live_document(name, datetime.now(UTC))
        except Lease.DoesNotExist:
            raise CommandError(f"There is no pool “{name}”.") from None
        self.stdout.write(json.dumps(document, ensure_ascii=False, indent=2))


def only_pool() -> str:
    names = list(Pool.objects.values_list("name", flat=True)[:2])
    if len(names) != 1:
        raise CommandError("There is no pool yet.") if not names else wrong_call("There are several pools: name one with --pool.")
    return names[0]
