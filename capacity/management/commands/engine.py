"""`manage.py engine`: the simulated inference engine, with the options of `python -m capacity.simulator`."""

import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from capacity.command_line import refuse
from capacity.simulator.command import run
from capacity.simulator.options import add_arguments, options_of


class Command(BaseCommand):
    help = "Run a simulated inference engine: an OpenAI-compatible streaming server with vLLM's metrics and a stated capacity."
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
