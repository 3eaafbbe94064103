"""A short run of `make chaos`: a few schedules of faults break nothing, and what would be broken is seen."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from capacity.node.processes import TOKEN_VARIABLE
from llmgw_site.tests.chaos.fleet import Fleet
from llmgw_site.tests.chaos.report import table
from llmgw_site.tests.chaos.run import Run
from llmgw_site.tests.chaos.schedule import schedule

from .site import until

# eleven kinds of faults, and none that has a lease waited for
SEED, SCHEDULES = 156, 3


def test_a_few_schedules_break_nothing_and_an_engine_that_nobody_started_is_seen(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    run = Run(fleet, SEED, print)
    with fleet.whole(), run.watched() as onlooker:
        run.begin(onlooker)
        for number in range(SCHEDULES):
            run.one(schedule(SEED, number), onlooker)
        assert run.result.violations == [], table(run.result)
        assert (len(run.result.recovery_passes), run.result.looks > 0) == (SCHEDULES, True)
        stray(fleet, lambda: bool(run.result.violations))
        assert any("is on no record of its host" in sentence for _, sentence in run.result.violations)


def stray(fleet: Fleet, is_seen: Callable[[], bool]) -> None:
    """An engine like the others, on a host that knows nothing of it."""
    command = [sys.executable, "-m", "capacity.simulator", "--host", fleet.hosts[0].address, "--port", "0", "--model", "chat"]
    with subprocess.Popen(command, env={**os.environ, TOKEN_VARIABLE: "nobody's"}, cwd=Path(__file__).parents[3]) as engine:
        try:
            until(is_seen)
        finally:
            engine.kill()
