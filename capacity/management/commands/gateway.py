"""`manage.py gateway`: the example gateway, with the options of `python -m capacity.gateway`."""

import argparse
import sys
from typing import Any

from django.core.management.base import CommandParser

from capacity.command_line import refuse
from capacity.gateway.command import add_arguments, options_of, run
from quotas.command import OperatorCommand


class Command(OperatorCommand):
    help = (
        "Run the example gateway: asks where to send, sends a made-up load shaped by public traces, holds what finds no replica."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            chosen = options_of(argparse.Namespace(**options))
        except ValueError as wrong:
            refuse(str(wrong))
        sys.exit(run(chosen))
