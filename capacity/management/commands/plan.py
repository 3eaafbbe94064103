"""`manage.py plan FILE|-`: the plan for a snapshot. Reads no database and writes nothing."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandParser

from capacity.plan_file import answer, arguments
from quotas.command import OperatorCommand


class Command(OperatorCommand):
    help = "Print the plan for a snapshot. Exit status 0: printed; 2: the snapshot is not valid, one line a fault on stderr."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        status = answer(options["file"], options["format"], options["lines"], sys.stdin.buffer, sys.stdout, sys.stderr)
        if status:
            sys.exit(status)
