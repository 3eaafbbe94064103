"""`manage.py take_over --pool P --reason …`: makes pools this installation's, after a restore or on a copy."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from capacity import services
from capacity.briefings.take_over_words import sentences_of
from capacity.models import Lease
from capacity.observation.claims import waits_of
from capacity.reconcile import pools
from capacity.wiring import Deps, deps
from quotas.command import OperatorCommand, needed
from quotas.forms import sentences


class Command(OperatorCommand):
    help = "Makes a pool this installation's after a restore, or on a copy that is to be the one. Stop the other one first."

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--pool", help="This pool.")
        which.add_argument("--all", action="store_true", dest="every", help="Each pool that needs it.")
        parser.add_argument("--reason", default="", help="Why; kept in the history.")
        parser.add_argument("--preview", action="store_true", help="Say what would change, and change nothing.")
        parser.add_argument("--json", action="store_true", dest="as_json", help="One object a line and pool.")

    def handle(self, *, pool: str | None, every: bool, reason: str, preview: bool, as_json: bool, **options: Any) -> None:
        leases = needing(deps()) if every else list(pools(name=pool))
        if not leases and not every:
            raise CommandError(f"There is no pool “{pool}”.")
        if not leases:
            self.stderr.write("No pool needs a take-over.")
        for lease in leases:
            try:
                done = act(deps(), lease, reason=reason, preview=preview)
            except ValidationError as error:
                raise CommandError(" ".join(sentences(error))) from error
            self.say(done, is_preview=preview, as_json=as_json)

    def say(self, done: services.TakeOver, *, is_preview: bool, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({**asdict(done), "preview": is_preview}, ensure_ascii=False))
        else:
            self.stdout.write("\n".join([done.pool, *(f"  {text}" for text in sentences_of(done, is_preview=is_preview))]))


def needing(deps: Deps) -> list[Lease]:
    """Those of which nobody can tell are among them: they are refused with a sentence."""
    return [lease for lease in pools() if is_needed(deps, lease)]


def is_needed(deps: Deps, lease: Lease) -> bool:
    reports = deps.driver.observe(lease.pool.name)
    return reports is None or bool(waits_of(lease, deps.installation, reports).problems)


def act(deps: Deps, lease: Lease, *, reason: str, preview: bool) -> services.TakeOver:
    if preview:
        return services.take_over_preview(lease, deps.driver.observe(lease.pool.name), deps.installation)
    now = datetime.now(UTC)
    return services.take_over(lease, deps.driver, installation=deps.installation, actor=None, reason=needed(reason), now=now)
