"""`manage.py engine`: the simulated inference engine, with the options of `python -m capacity.simulator`."""

import argparse
import sys
from typing import Any

from django.core.management.base import CommandParser

from capacity.command_line import refuse
from capacity.simulator.command import run
from capacity.simulator.options import add_arguments, options_of
from quotas.command import OperatorCommand


class Command(OperatorCommand):
    help = "Run a simulated inference engine: an OpenAI-compatible streaming server with vLLM's metrics and a stated capacity."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            chosen = options_of(argparse.Namespace(**options))
        except ValueError as wrong:
            refuse(str(wrong))
        sys.exit(run(chosen))
