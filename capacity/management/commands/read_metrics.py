"""What llmgw reads in an engine's metrics. Touches nothing."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import CommandParser

from capacity.briefings.metrics_report import document, lines, report
from capacity.command_line import say
from quotas.command import OperatorCommand


class Command(OperatorCommand):
    help = (
        "Prints what llmgw reads of an engine: requests in flight, tokens, KV cache, latencies, models. "
        "Exit status 0: its load is known; 1: it is not, and a sentence says why."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", metavar="URL|FILE|-", help="The base URL, a saved answer, or - for the standard input.")
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="Print an object; its error is the sentence or null."
        )

    def handle(self, *, source: str, as_json: bool, **options: Any) -> None:
        found = report(source)
        if as_json:
            say(json.dumps(document(found), ensure_ascii=False, indent=2))
        elif found.reading.engine is not None:
            for line in lines(found):
                say(line)
        if found.fault is not None:
            self.stderr.write(found.fault)
            sys.exit(1)
