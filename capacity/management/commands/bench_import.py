"""`manage.py bench_import FILE…`: result files of load generators as sweeps, and the measurement that each would give."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from capacity.bench.formats.contract import Unreadable
from capacity.bench.imports import Imported, read_files
from capacity.domain.measurement.document import import_document
from capacity.domain.measurement.judge import MOST_REPLICAS, judge
from capacity.domain.measurement.slo_text import parse_slo
from capacity.domain.measurement.table import lines
from capacity.domain.measurement.types import Judgement, Slo
from capacity.models import Slo as SloRow
from capacity.slo_rows import slo_of_row
from quotas.command import OperatorCommand, wrong_call


class Command(OperatorCommand):
    help = "Reads result files of load generators and judges each sweep. Exit status 0: read; 2: nothing could be read."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="+", metavar="FILE", help="All files of a sweep, in any order; several sweeps too.")
        parser.add_argument("--preview", action="store_true", help="Show, and store nothing.")
        parser.add_argument("--json", action="store_true", help="As one JSON document, llmgw.import/1.")
        parser.add_argument("--slo", default="", help="Bounds such as 'ttft p95 500, tpot p95 50', or the name of an SLO.")
        parser.add_argument("--replicas", type=int, default=1, help="So many replicas stood behind it: divides both numbers.")

    def handle(self, *args: Any, **options: Any) -> None:
        slo = slo_named(options["slo"])
        if not 1 <= options["replicas"] <= MOST_REPLICAS:
            raise wrong_call(f"--replicas is a whole number from 1 to {MOST_REPLICAS}.")
        imported = self.read([Path(name) for name in options["file"]])
        judgements = [judge(sweep, slo, options["replicas"]) for sweep in imported.sweeps]
        self.show(judgements, imported, as_json=options["json"])

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

    def show(self, judgements: list[Judgement], imported: Imported, *, as_json: bool) -> None:
        left_out = (*imported.skipped, *imported.unread)
        if as_json:
            self.stdout.write(json.dumps(import_document(judgements, left_out), ensure_ascii=False, allow_nan=False))
            return
        for line in lines(judgements, left_out):
            self.stdout.write(line)


def slo_named(text: str) -> Slo | None:
    """An SLO by its name, or as text; None where none is given."""
    if not text.strip():
        return None
    row = _row(text.strip())
    if row is not None and slo_of_row(row) is None:
        raise wrong_call(f"The SLO “{row.name}” has no bound, so nothing can be judged by it.")
    try:
        return slo_of_row(row) if row is not None else parse_slo(text)
    except ValueError as why:
        raise wrong_call(f"There is no SLO of that name, and as text: {why}") from None


def _row(name: str) -> SloRow | None:
    """Text with bounds needs no database: a file can be read where there is no installation."""
    try:
        parse_slo(name)
    except ValueError:
        return SloRow.objects.filter(name=name).first()
    return None
