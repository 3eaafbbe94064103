"""Switches a model between advise, add_only, auto and paused, or shows what is known before that."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from capacity import services
from capacity.briefings.mode_facts import document, facts_of
from capacity.models import LanguageModel
from quotas.command import OperatorCommand, needed


class Command(OperatorCommand):
    help = "Switches a model's mode. --preview shows its scorecard and the next pass in that mode, and changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("model")
        parser.add_argument("mode", choices=LanguageModel.Mode.values)
        parser.add_argument("--reason", default="", help="Why; kept in the history. Needed unless --preview.")
        parser.add_argument("--preview", action="store_true", help="Show, and change nothing.")
        parser.add_argument("--json", action="store_true", help="As one JSON document.")

    def handle(self, *args: Any, **options: Any) -> None:
        model = LanguageModel.objects.filter(name=options["model"]).first()
        if model is None:
            raise CommandError(f"There is no model “{options['model']}”.")
        if options["preview"]:
            self.show(document(facts_of(model, options["mode"], datetime.now(UTC))), as_json=options["json"])
            return
        self.switch(model, options["mode"], needed(options["reason"]), as_json=options["json"])

    def switch(self, model: LanguageModel, mode: str, reason: str, *, as_json: bool) -> None:
        try:
            warnings = services.model_mode(model, mode, actor=None, reason=reason)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        for warning in warnings:
            self.stderr.write(warning)
        done = {"model": model.name, "mode": model.mode}
        self.stdout.write(json.dumps(done) if as_json else f"{model.name} is in mode {model.get_mode_display()}.")

    def show(self, facts: dict[str, Any], *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(facts, ensure_ascii=False))
            return
        for line in lines(facts):
            self.stdout.write(line)


def lines(facts: dict[str, Any]) -> list[str]:
    card, coming = facts["scorecard"], facts["next_pass"]
    return [
        f"{facts['model']} is in mode {facts['mode']}.",
        f"{card['covered_days']:.1f} of the last 14 days are recorded.",
        f"llmgw would have: {side(card['llmgw'])}",
        f"what ran:         {side(card['ran'])}",
        f"The next pass in mode {coming['mode']}: {coming['starts']} starts and {coming['stops']} stops are done, "
        f"{coming['advice']} are advice, {len(coming['withheld'])} withheld by the brake. {coming['why']}",
        *facts["reason_needed"],
    ]


def side(found: dict[str, Any]) -> str:
    hours = ", ".join(f"{hours:g} {resource}" for resource, hours in found["unit_hours"].items()) or "0"
    worst = found["worst"]
    at = f" (worst at {worst['at']}: {worst['demand']} requests on {worst['capacity']})" if worst else ""
    return (
        f"{found['adds']} added, {found['removals']} taken back, unit-hours {hours}, "
        f"{found['short_minutes']:g} min above its capacity{at}"
    )
