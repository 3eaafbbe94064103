"""`manage.py seed_demo [--llama] [--remove]`: an example, written or taken away."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from capacity import example
from quotas.command import OperatorCommand


class Command(OperatorCommand):
    help = "Write the example fleet; its engines start with `make run`. --remove takes it away, with its processes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--llama", action="store_true", help="the one with real llama.cpp engines; reads this machine first")
        parser.add_argument("--remove", action="store_true", help="take the example away")

    def handle(self, *args: Any, **options: Any) -> None:
        which = example.LLAMA if options["llama"] else example.SIMULATED
        try:
            (example.remove if options["remove"] else example.seed)(which=which)
        except ValidationError as refused:
            raise CommandError(" ".join(refused.messages)) from refused
        self.stdout.write(
            "The example is removed." if options["remove"] else f"The example is there: see the pool “{which.pool}”."
        )
