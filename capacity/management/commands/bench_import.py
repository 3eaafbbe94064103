"""`manage.py bench_import FILE…`: result files of load generators as sweeps, and the measurement that each would give."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from capacity.bench.formats.contract import Unreadable
from capacity.bench.imports import Imported, read_files
from capacity.domain.measurement.judge import MOST_REPLICAS
from capacity.domain.measurement.table import lines
from capacity.importing import Asked, Judged, judged, profile_named, store, would_store
from capacity.models import Measurement, Profile
from quotas.command import OperatorCommand, needed, wrong_call
from quotas.forms import sentences


class Command(OperatorCommand):
    help = "Reads result files of load generators, judges each sweep, and stores one for a profile. 2: nothing could be read."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="+", metavar="FILE", help="All files of a sweep, in any order; several sweeps too.")
        parser.add_argument("--preview", action="store_true", help="Show, and store nothing.")
        parser.add_argument("--json", action="store_true", help="As one JSON document, llmgw.import/1.")
        parser.add_argument("--slo", default="", help="Bounds such as 'ttft p95 500, tpot p95 50', or the name of an SLO.")
        parser.add_argument("--replicas", type=int, help="So many replicas stood behind it: divides both numbers.")
        parser.add_argument("--model", default="", help="Store it for this model's profile.")
        parser.add_argument("--profile", default="", help="The profile that was measured.")
        parser.add_argument("--sweep", type=int, help="Which of several sweeps is stored, from 1.")
        parser.add_argument(
            "--concurrency", type=int, help="Requests in flight, where the files do not say how many meet the SLO."
        )
        parser.add_argument("--reason", default="", help="Why it is stored; kept in the history. Needed unless --preview.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["replicas"] is not None and not 1 <= options["replicas"] <= MOST_REPLICAS:
            raise wrong_call(f"--replicas is a whole number from 1 to {MOST_REPLICAS}.")
        reason = self.reason_of(options)
        try:
            profile = profile_named(Profile.objects.all(), options["model"], options["profile"])
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        try:
            found = judged(self.read([Path(name) for name in options["file"]]), asked_of(options, profile))
        except ValidationError as error:
            raise wrong_call(" ".join(error.messages)) from error
        stored = self.store(found, reason) if reason else self.preview(found)
        self.show(found, stored, as_json=options["json"])

    def reason_of(self, options: dict[str, Any]) -> str:
        """Empty where nothing is to be stored: without a profile it is only looked at."""
        named = bool(options["model"]) + bool(options["profile"])
        if named == 1:
            raise wrong_call("Name both: --model M --profile P.")
        return needed(options["reason"]) if named and not options["preview"] else ""

    def read(self, paths: list[Path]) -> Imported:
        """Each file that could not be read is said on stderr. Where none could, nothing is printed and the status is 2."""
        try:
            imported = read_files(paths)
        except Unreadable as why:
            raise wrong_call(str(why)) from None
        for row in imported.unread:
            self.stderr.write(f"{row.where}: {row.why}")
        if not imported.sweeps:
            sys.exit(2)
        return imported

    def store(self, found: Judged, reason: str) -> Measurement:
        try:
            measurement, warnings = store(found, actor=None, reason=reason)
        except ValidationError as error:
            raise CommandError(" ".join(sentences(error))) from error
        for warning in warnings:
            self.stderr.write(warning)
        return measurement

    def preview(self, found: Judged) -> None:
        """What storing would warn of, where a profile is named and a sweep can be stored."""
        if found.asked.profile is not None:
            try:
                warnings = would_store(found)[1]
            except ValidationError as error:
                warnings = sentences(error)
            for warning in warnings:
                self.stderr.write(warning)

    def show(self, found: Judged, stored: Measurement | None, *, as_json: bool) -> None:
        if as_json:
            told = found.document() | ({"stored": {"id": stored.pk, "status": stored.status}} if stored else {})
            self.stdout.write(json.dumps(told, ensure_ascii=False, allow_nan=False))
            return
        for line in lines(found.judgements, (*found.imported.skipped, *found.imported.unread)):
            self.stdout.write(line)
        if stored:
            how = "Stored as measurement" if stored.is_new else "Nothing is stored: it is measurement"
            self.stdout.write(f"{how} {stored.pk} of {stored.profile}, {stored.status_word}.")


def asked_of(options: dict[str, Any], profile: Profile | None) -> Asked:
    return Asked(
        profile=profile,
        slo=options["slo"],
        replicas=options["replicas"],
        sweep=options["sweep"],
        concurrency=options["concurrency"],
    )
