"""What the commands of operators have in common: a refusal is one sentence, without usage, class name or traceback."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from .refusals import in_lines, refuse


class OperatorCommand(BaseCommand):
    """Exit status 2 for a wrong call, the `CommandError`'s own (1) for a refusal. Options are not abbreviated."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, allow_abbrev=False, **kwargs)
        if self._called_from_command_line:
            parser.error = refuse  # type: ignore[method-assign]
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            _must_be_text(options)
            return super().execute(*args, **options)
        except CommandError as refused:
            # a failed system check is a CommandError too, of several lines and of Django's own form
            if not self._called_from_command_line or options.get("traceback") or type(refused) is not CommandError:
                raise
            self.stderr.write(in_lines(str(refused)))
            sys.exit(refused.returncode)
        except DatabaseError as error:
            if not self._called_from_command_line or options.get("traceback"):
                raise
            said = (str(error).splitlines() or [type(error).__name__])[0]
            self.stderr.write(f"The database does not do what was asked: {said}. `manage.py prepare` brings it to this version.")
            sys.exit(1)


def _must_be_text(options: Mapping[str, Any]) -> None:
    """Bytes of an option that are no UTF-8 come in as lone surrogates, which no database takes. Files may be called so."""
    for name, value in options.items():
        if isinstance(value, str) and value != value.encode(errors="replace").decode():
            raise wrong_call(f"{name.replace('_', ' ').capitalize()} “{value}” is not UTF-8.")


def wrong_call(sentence: str) -> CommandError:
    """A call that lacks something, as against one that is refused: exit status 2."""
    return CommandError(sentence, returncode=2)


def needed(reason: str) -> str:
    """The reason of an act, without blanks around it."""
    if not reason.strip():
        raise wrong_call("Say why: --reason “…”; it is kept in the history.")
    return reason.strip()
