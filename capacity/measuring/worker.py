"""The worker for sweeps: what waits is carried one after another, and what nobody carries any more is ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import FrameType

import structlog
from django.conf import settings

from ..bench.sweep import sweep
from ..models import BenchRun
from ..services.sweeps import wake_worker
from ..wiring import deps
from . import tokens
from .keeper import Means
from .life import carry, claim, end_unheard, keep_parked, next_due, park

log = structlog.get_logger(__name__)


class Ending:
    """Whether this process was told to end. The run notices within a second and says so; then the signal does what it would."""

    def __init__(self) -> None:
        self.number: int | None = None

    def __call__(self) -> bool:
        return self.number is not None

    def note(self, number: int, frame: FrameType | None) -> None:
        self.number = number


@contextmanager
def ends_noted() -> Iterator[Ending]:
    """While a run is carried SIGTERM is noted, and is sent again when the run has ended."""
    ending = Ending()
    before = signal.signal(signal.SIGTERM, ending.note)
    try:
        yield ending
    finally:
        signal.signal(signal.SIGTERM, before)
        if ending.number is not None:
            signal.raise_signal(ending.number)


def run_queued() -> None:
    """Everything that is due, until nothing is or this process is to end. What needs a replica of its own waits for it without
    holding up the others."""
    with ends_noted() as ending:
        while not ending() and (run := next_due()) is not None:
            if park(run, now()):
                log.info("sweep_waits", run=run.pk)
            elif claim(run, now()):
                log.info("sweep_begins", run=run.pk)
                carry(run, means(ending))


def means(ending: Ending, **more: object) -> Means:
    usual = {"sweep": sweep, "now": now, "pause": time.sleep, "load": load_of, "ends": ending, "token": tokens.take}
    return Means(**usual | more)  # type: ignore[arg-type]


def now() -> datetime:
    return datetime.now(UTC)


def load_of(run: BenchRun) -> tuple[int, datetime] | None:
    """The engine's own count of the run's replica. Gateways may have left it already; what still runs is what counts."""
    if run.replica is None:
        return None
    found = (deps().loads.loads(run.profile.model.pool.name) or {}).get(run.replica.name)
    return None if found is None or found.in_flight is None else (found.in_flight, found.sampled_at)


def watch(at: datetime) -> None:
    """Ends what nobody carries any more, and tells the worker again of what is due: a broker may have lost it."""
    end_unheard(at)
    keep_parked(at)
    if next_due() is not None:
        wake_worker(settings.BENCH_QUEUE)
