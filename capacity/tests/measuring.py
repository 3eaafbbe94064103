"""A worker for sweeps whose time passes only where it waits, and runs for it to carry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from capacity import services
from capacity.bench.asked import Asked, Progress, Swept
from capacity.domain.measurement.types import Setting, Stage
from capacity.measuring import life
from capacity.measuring.keeper import Means
from capacity.measuring.wish import Wish
from capacity.models import BenchRun
from capacity.tests.fleet import START, Fleet

SLO = "ttft p95 500, tpot p95 50"


def stage(level: int, ttft: float) -> Stage:
    latencies = {"ttft_ms": {"p95": ttft, "mean": ttft}, "tpot_ms": {"p95": 20.0, "mean": 20.0}}
    return Stage(
        where=f"level {level}",
        asked=level,
        mean_in_flight=float(level),
        requests=400,
        errors=0,
        seconds=60.0,
        tokens_per_second=100.0 * level,
        **latencies,
    )


STAGES = (stage(1, 100), stage(2, 200), stage(4, 900))


SWEPT = Swept(setting=Setting(tool="llmgw"), stages=STAGES, ended="complete", why="The limit is found.")


class Clock:
    """A worker's means: time passes only where it is waited for, and `at` says what happens meanwhile."""

    def __init__(self, fleet: Fleet | None = None) -> None:
        self.fleet, self.time, self.load, self.asked = fleet, START, 0, []
        self.each: Callable[[], None] = lambda: None
        self.said: list[str] = []
        self.ending = False
        self.swept = SWEPT

    def now(self) -> datetime:
        return self.fleet.fake.now() if self.fleet else self.time

    def pause(self, seconds: float) -> None:
        if self.fleet:
            self.fleet.passes(1, seconds=5)
        self.time += timedelta(seconds=seconds)
        self.each()

    def sweep(self, asked: Asked, *, progress: Callable[[Progress], None], should_stop: Callable[[], bool]) -> Swept:
        self.asked.append(asked)
        for count in range(len(self.swept.stages) + 1):
            self.time += timedelta(seconds=3)
            if self.fleet:
                self.fleet.fake.advance(3)
            progress(Progress(doing="measuring", level=8, stages=self.swept.stages[:count], levels_left=2, seconds_left=61.5))
            self.each()
            if should_stop():
                return replace(self.swept, ended="stopped", why="It was stopped.")
        return self.swept

    @property
    def means(self) -> Means:
        return Means(
            sweep=self.sweep,
            now=self.now,
            pause=self.pause,
            load=lambda run: (self.load, self.now() + timedelta(seconds=3)),
            ends=lambda: self.ending,
            say=self.said.append,
        )


def asked_run(fleet: Fleet, **wish: Any) -> BenchRun:
    return services.bench_start(
        fleet.profile, Wish(**{"slo": SLO, **wish}), actor=None, reason="new engine", now=fleet.fake.now()
    )


def carried(run: BenchRun, clock: Clock) -> BenchRun:
    assert life.claim(run, clock.now())
    return life.carry(run, clock.means)


def outside(fleet: Fleet, **wish: Any) -> BenchRun:
    return asked_run(fleet, endpoint="http://127.0.0.1:9999", **wish)
