"""`manage.py node_cordon NAME --reason …`: takes a node out of service and moves what runs there; --open gives it back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from capacity import services
from capacity.briefings.evacuate import Facts, document, facts_of, sentence_of, sentences_of
from capacity.domain.evacuation import Evacuation
from capacity.models import Node
from quotas.command import OperatorCommand, needed
from quotas.forms import sentences


class Command(OperatorCommand):
    help = "Cordons a node: nothing new is placed, what runs is moved away. --open gives it back, --preview says what would move."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("node")
        parser.add_argument("--open", action="store_true", help="Open it again.")
        parser.add_argument("--preview", action="store_true", help="Say what would move, and change nothing.")
        parser.add_argument("--reason", default="", help="Why; kept in the history. Needed unless --preview.")
        parser.add_argument("--json", action="store_true", dest="as_json", help="As one JSON document.")

    def handle(self, *args: Any, **options: Any) -> None:
        node = Node.objects.select_related("pool").filter(name=options["node"]).first()
        if node is None:
            raise CommandError(f"There is no node “{options['node']}”.")
        if options["preview"]:
            self.show(facts_of(node, options["open"], datetime.now(UTC)), as_json=options["as_json"])
            return
        self.act(node, options["open"], needed(options["reason"]), as_json=options["as_json"])

    def act(self, node: Node, schedulable: bool, reason: str, *, as_json: bool) -> None:
        try:
            warnings = services.node_cordon(node, schedulable, actor=None, reason=reason)
        except ValidationError as error:
            raise CommandError(" ".join(sentences(error))) from error
        for warning in warnings:
            self.stderr.write(warning)
        words = f"{node} is open." if schedulable else f"{node} is cordoned; what runs there is moved away, one a model and pass."
        self.stdout.write(json.dumps({"node": node.name, "schedulable": schedulable}) if as_json else words)

    def show(self, facts: Facts, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(document(facts), ensure_ascii=False))
            return
        for line in lines(facts):
            self.stdout.write(line)


def lines(facts: Facts) -> list[str]:
    found = facts.found
    moves = found.moves if isinstance(found, Evacuation) else ()
    return [
        *sentences_of(facts),
        *(f"  {move.replica} ({move.units} {move.resource} for {move.model}) {sentence_of(move)}" for move in moves),
    ]
