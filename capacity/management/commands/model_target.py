"""Says what it takes for a model to serve a demand. Touches nothing."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser

from capacity.briefings.target import target_of
from capacity.domain.sizing import WrongQuestion
from capacity.models import LanguageModel
from capacity.target_file import HELP, Refused, arguments, asked, from_file, in_words_of_options, printed, refuse
from quotas.command import OperatorCommand


class Command(OperatorCommand):
    help = HELP

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """A wrong call ends with 1: 2 is an answer."""
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        if self._called_from_command_line:
            parser.error = refuse  # type: ignore[method-assign]
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            status = self.from_file(options) if options["snapshot"] else self.live(options)
        except Refused as refused:
            raise CommandError(str(refused)) from None
        except WrongQuestion as wrong:
            raise CommandError(in_words_of_options(wrong)) from None
        if status:
            sys.exit(status)

    def from_file(self, options: dict[str, Any]) -> int:
        return printed(from_file(options), options["as_json"], self.stdout)

    def live(self, options: dict[str, Any]) -> int:
        question = asked(options)
        model = LanguageModel.objects.filter(name=options["model"]).first()
        if model is None:
            raise CommandError(f"There is no model “{options['model']}”.")
        found = target_of(model, question, datetime.now(UTC))
        return printed(found.answer, options["as_json"], self.stdout, found.cost, found.cost_note, found.inputs)
