"""Runs one pass of each pool now, or says what it would decide."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser

from capacity.braking import hold
from capacity.domain.plan_document import plan_document
from capacity.domain.plan_table import table
from capacity.models import Lease
from capacity.reconcile import PassReport, advise, pools, run_pass
from capacity.wiring import deps
from quotas.command import OperatorCommand


class Command(OperatorCommand):
    help = "Runs one pass of each pool (or of --pool) now. Exit status 1 where a pass could not be made."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pool", help="Only this pool.")
        parser.add_argument(
            "--once", action="store_true", help="One pass and no more, as without it: scripts say what they mean."
        )
        parser.add_argument("--advise", action="store_true", help="Decide and print; take no lease, record nothing, do nothing.")
        parser.add_argument("--json", action="store_true", help="The plan as llmgw.plan/1, one line a pool.")

    def handle(self, *args: Any, **options: Any) -> None:
        leases = list(pools(name=options["pool"]) if options["pool"] else pools())
        if not leases:
            raise CommandError(f"There is no pool “{options['pool']}”." if options["pool"] else "There is no pool yet.")
        if options["advise"]:
            for lease in leases:
                now = datetime.now(UTC)
                built, plan = advise(deps(), lease, now)
                self.say(lease, hold(lease, built, plan, now).plan, as_json=options["json"])
            return
        reports = [self.one_pass(lease, as_json=options["json"]) for lease in leases]
        if any(report.outcome != "done" for report in reports):
            raise SystemExit(1)

    def one_pass(self, lease: Lease, *, as_json: bool) -> PassReport:
        report = run_pass(deps(), lease, datetime.now(UTC))
        if report.plan is not None:
            self.say(lease, report.plan, as_json=as_json)
        else:
            self.stderr.write(f"{report.pool}: {SENTENCES[report.outcome]} {report.error}".rstrip())
        return report

    def say(self, lease: Lease, plan: Any, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(plan_document(plan), ensure_ascii=False))
        else:
            self.stdout.write(f"{lease.pool.name}\n{table(plan)}")


SENTENCES = {
    "held": "another pass has the lease.",
    "lease_lost": "the lease was lost on the way; nothing was done.",
    "failed": "the database did not answer; nothing was done.",
}
