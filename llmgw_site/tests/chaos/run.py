"""Schedule after schedule on one fleet, watched all the time."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from .faults import Faults
from .fleet import Fleet
from .invariants import Watch, unsteady
from .looking import look
from .observation import Observation
from .rows import LOST_SECONDS
from .schedule import Schedule

LOOK_SECONDS = 0.25
STEADY_SECONDS = 150.0
STEADY_PASSES = 120  # two beats make two a second
REST_PASSES = 3  # in so many passes in a row nothing is to be done


@dataclass(slots=True, kw_only=True)
class Result:
    """What became of a run. `violations`: (schedule, sentence); `recovery_passes`: schedule → passes until all was at rest;
    `untaken`: edits of those faults that the API did not take."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    untaken: Counter[str] = field(default_factory=Counter)
    recovery_passes: dict[int, int] = field(default_factory=dict)
    violations: list[tuple[int, str]] = field(default_factory=list)
    looks: int = 0

    @property
    def failed(self) -> list[int]:
        return sorted({number for number, _ in self.violations})


class Onlooker:
    """Looks at the fleet in a thread of its own, four times a second, and keeps what it finds wrong."""

    def __init__(self, fleet: Fleet, tell: Callable[[str], None]) -> None:
        self._fleet = fleet
        self._tell = tell
        self._watch = Watch(LOST_SECONDS)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="onlooker")
        self.newest = Observation(at=0)
        self.looks = 0

    def __enter__(self) -> Onlooker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def after(self, moment: float) -> Observation:
        """A look that was begun after that time."""
        while self.newest.at < moment:
            if not self._thread.is_alive():
                raise RuntimeError("Nobody looks at the fleet any more.")
            time.sleep(LOOK_SECONDS / 5)
        return self.newest

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            try:
                seen = look(self._fleet)
            except sqlite3.OperationalError:
                continue  # the database is locked; there is another look
            for sentence in self._watch.see(seen):
                self._tell(sentence)
            self.newest, self.looks = seen, self.looks + 1


class Run:
    """One fleet, hurt again and again. `say` gets a line for each thing that happens."""

    def __init__(self, fleet: Fleet, seed: int, say: Callable[[str], None]) -> None:
        self.result = Result(seed=seed)
        self._fleet = fleet
        self._faults = Faults(fleet)
        self._say = say
        self._number = -1
        self._lock = threading.Lock()

    def watched(self) -> Onlooker:
        return Onlooker(self._fleet, self._violated)

    def begin(self, onlooker: Onlooker) -> None:
        """Wait for the fleet as it is when nobody has hurt it yet."""
        self._settle(onlooker)

    def one(self, schedule: Schedule, onlooker: Onlooker) -> None:
        """Its faults, and then rest."""
        self._number = schedule.number
        self._say(f"schedule {schedule.number}")
        for fault in schedule.faults:
            self._say(f"  {fault}")
        self.result.faults.update(fault.kind for fault in schedule.faults)
        self._faults.run(schedule)
        passes = self._settle(onlooker)
        self.result.recovery_passes[schedule.number] = passes
        self.result.looks, self.result.untaken = onlooker.looks, self._faults.untaken
        self._say(f"  passes until it was at rest: {passes}")

    def _settle(self, onlooker: Onlooker) -> int:
        """Passes from now until nothing was to be done any more; a violation where that takes too long."""
        deadline = time.monotonic() + STEADY_SECONDS
        begin = onlooker.after(time.time()).passes
        rest_since: int | None = None
        edited = ["nothing is put back yet"]
        while True:
            self._fleet.restart_what_ended()
            edited = edited and self._faults.put_back()
            # as an operator does who knows why engines ended: a rest after failures is no part of what is tried here
            self._fleet.ask("DELETE FROM capacity_backoff")
            seen = onlooker.after(time.time())
            why = edited or unsteady(seen)
            rest_since = None if why else seen.passes if rest_since is None else rest_since
            if rest_since is not None and seen.passes >= rest_since + REST_PASSES:
                return rest_since - begin
            if time.monotonic() > deadline or seen.passes - begin > STEADY_PASSES + REST_PASSES:
                self._violated(f"not at rest after {seen.passes - begin} passes: {'; '.join(why) or 'only just'}")
                return seen.passes - begin

    def _violated(self, sentence: str) -> None:
        with self._lock:
            self.result.violations.append((self._number, sentence))
        self._say(f"  VIOLATION {sentence}")
