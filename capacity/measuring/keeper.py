"""A run's row in the hands of the worker that carries it: its heartbeat, its progress, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import DatabaseError

from ..bench.asked import Progress, Swept
from ..models import BenchRun, LanguageModel
from .document import progress_document, stage_rows

log = structlog.get_logger(__name__)

SAVE: Final = timedelta(seconds=2)
LOOK: Final = timedelta(seconds=1)

Sweeper = Callable[..., Swept]


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a run is carried with. `sweep(asked, progress=…, should_stop=…)`; `ends`: whether this worker is being ended; `load`:
    a replica's requests in flight and when they were counted, None where unknown; `say`: a line for whoever watches; `token`: the
    bearer token of a run that has one, None where it is not kept any more."""

    sweep: Sweeper
    now: Callable[[], datetime]
    pause: Callable[[float], None]
    load: Callable[[BenchRun], tuple[int, datetime] | None]
    ends: Callable[[], bool] = lambda: False
    say: Callable[[str], None] = lambda line: None
    token: Callable[[BenchRun], str | None] = lambda run: None


class Over(Exception):
    """The run ends in that state, and why in one sentence."""

    def __init__(self, state: str, why: str) -> None:
        super().__init__(why)
        self.state, self.why = state, why


class Lost(Exception):
    """Somebody else ended the run: nothing of it is written any more."""


class Keeper:
    def __init__(self, run: BenchRun, means: Means) -> None:
        self.run, self.means = run, means
        self.is_lost = False
        self._saved = self._looked = means.now() - SAVE
        self._stages = 0
        self._asked_to_stop = False

    def beat(self, **fields: Any) -> BenchRun:
        """Writes with a heartbeat, and reads the row anew. `Lost` where the run is over already."""
        now = self.means.now()
        if not BenchRun.objects.filter(pk=self.run.pk).open().update(heartbeat_at=now, **fields):
            raise Lost
        self._saved = now
        self.run.refresh_from_db()
        return self.run

    def wait(self, seconds: float = 1.0) -> BenchRun:
        """Lets time pass, and looks again. `Over` where it was asked to stop."""
        self.refuse_where_stopped()
        self.means.pause(seconds)
        run = self.beat()
        self.refuse_where_stopped()
        return run

    def refuse_where_stopped(self) -> None:
        if self.means.ends():
            raise Over(BenchRun.State.STOPPED, "Its worker was ended.")
        if self.run.stop_asked:
            raise Over(BenchRun.State.STOPPED, "It was stopped before it measured anything.")

    def progress(self, found: Progress) -> None:
        """Saved every few seconds and after each level. A database that does not answer now is asked again."""
        now = self.means.now()
        news = len(found.stages) != self._stages
        if not news and abs(now - self._saved) < SAVE:  # clocks are set back too
            return
        for stage in found.stages[self._stages :]:
            self.means.say(stage_line(stage_rows([stage])[0]))
        self._stages = len(found.stages)
        self._saved = now
        self._write(progress=progress_document(found), stages=stage_rows(found.stages))

    def _write(self, **fields: Any) -> None:
        try:
            self.beat(**fields)
        except Lost:
            self.is_lost = True
        except DatabaseError as error:
            log.warning("sweep_not_saved", run=self.run.pk, error=type(error).__name__)

    def should_stop(self) -> bool:
        """Asked four times a second; the row is looked at once."""
        now = self.means.now()
        if abs(now - self._looked) >= LOOK:
            self._looked = now
            self._asked_to_stop = self._reads_stop()
        return self._asked_to_stop or self.is_lost or self.means.ends()

    def _reads_stop(self) -> bool:
        try:
            return BenchRun.objects.filter(pk=self.run.pk, stop_asked=True).exists()
        except DatabaseError:
            return self._asked_to_stop


def end(run: BenchRun, state: str, why: str, now: datetime, **fields: Any) -> bool:
    """Ends an open run; False where it was over already. Its own replica goes back where its model takes nothing back."""
    mode = LanguageModel.objects.filter(profiles=run.profile_id).values_list("mode", flat=True).first()
    held = BenchRun.objects.filter(pk=run.pk).values_list("replica", flat=True).first()
    goes = run.own_replica and held is not None and mode != LanguageModel.Mode.AUTO
    values = {"state": state, "message": why, "ended_at": now, "give_back": goes, "parked": False, **fields}
    done = bool(BenchRun.objects.filter(pk=run.pk).open().update(**values))
    if done:
        log.info("sweep_over", run=run.pk, state=state)
    return done


def end_parked(run: BenchRun, state: str, why: str, now: datetime) -> bool:
    """False where a worker has taken it up meanwhile."""
    return bool(BenchRun.objects.filter(pk=run.pk).parked().update(parked=False)) and end(run, state, why, now)


def stage_line(row: dict[str, Any]) -> str:
    """One level in a line."""
    parts = [f"{row['level']} in flight" if row["level"] is not None else "unknown level"]
    if row["tokens_per_second"] is not None:
        parts.append(f"{row['tokens_per_second']:.1f} tokens/s")
    parts += [f"{name} p95 {row[name]['p95']:.0f} ms" for name in ("ttft", "tpot", "e2e") if row[name].get("p95") is not None]
    if row["errors"]:
        parts.append(f"{row['errors']} errors")
    return " · ".join(parts)
