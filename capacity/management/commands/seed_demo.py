"""`manage.py seed_demo [--remove]`: the example, written or taken away."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from capacity import example


class Command(BaseCommand):
    help = "Write the example fleet; its engines start with `make run`. --remove takes it away, with its processes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--remove", action="store_true", help="take the example away")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            (example.remove if options["remove"] else example.seed)()
        except ValidationError as refused:
            raise CommandError(" ".join(refused.messages)) from refused
        self.stdout.write("The example is removed." if options["remove"] else "The example is there: see the pool “example”.")
