"""`manage.py gateway`: the example gateway, with the options of `python -m capacity.gateway`."""

import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from capacity.command_line import refuse
from capacity.gateway.command import add_arguments, options_of, run


class Command(BaseCommand):
    help = (
        "Run the example gateway: asks where to send, sends a made-up load shaped by public traces, holds what finds no replica."
    )
    requires_system_checks = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, allow_abbrev=False, **kwargs)
        if self._called_from_command_line:
            parser.error = refuse  # type: ignore[method-assign]
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            chosen = options_of(argparse.Namespace(**options))
        except ValueError as wrong:
            refuse(str(wrong))
        sys.exit(run(chosen))
