"""`python -m llmgw_site.tests.chaos`: hurt a fleet of real processes for some minutes; exit 1 where that broke a rule."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from .fleet import Fleet
from .leftovers import end_leftovers, new_folder
from .report import table, verdict, write
from .run import Result, Run
from .schedule import Schedule, schedule

INTERRUPTED = 130
ROOT = Path(__file__).resolve().parents[3]


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(INTERRUPTED))  # not at once: everything that was started is ended first
    end_leftovers()
    folder = new_folder()
    numbers = iter([asked.only]) if asked.only is not None else count()
    result = chaos(folder, asked.seed, minutes(asked.minutes, (schedule(asked.seed, number) for number in numbers)))
    print(table(result))
    target = Path(os.environ.get("LLMGW_VAR", ROOT / "var")) / "chaos.json"
    write(result, target)
    print(f"written to {target}")
    if result.violations:
        print(f"logs and database: {folder}")
    else:
        shutil.rmtree(folder)
    print(verdict(result))
    return 1 if result.violations else 0


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--minutes", type=float, default=5.0, help="no schedule begins later (default 5)")
    found.add_argument("--only", type=int, metavar="NUMBER", help="this schedule alone")
    return found


def minutes(many: float, schedules: Iterator[Schedule]) -> Iterator[Schedule]:
    """Those that begin within so many minutes from the first."""
    first = time.monotonic()
    for found in schedules:
        if time.monotonic() > first + many * 60:
            return
        yield found


def chaos(folder: Path, seed: int, schedules: Iterator[Schedule]) -> Result:
    """A fleet below `folder`, hurt by one schedule after the other, and taken down."""
    fleet = Fleet(folder)
    run = Run(fleet, seed, lambda line: print(line, flush=True))
    with fleet.whole(), run.watched() as onlooker:
        run.begin(onlooker)
        for found in schedules:
            run.one(found, onlooker)
    return run.result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
