"""All children together: what is wanted and what runs are brought together, again and again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .child import Child, Record, Running, forget_record, is_alive, read_records


class Group:
    """The children below one state folder. Times are seconds of one monotonic clock, given by the caller."""

    def __init__(self, *, folder: Path, root: Path) -> None:
        self._folder = folder
        self._root = root
        self._running: dict[str, Running] = {}
        self._ending: dict[str, Running] = {}

    def adopt(self, known: Sequence[Child], now: float) -> list[str]:
        """Take over what an earlier supervisor left running; the names of those taken over."""
        by_name = {child.name: child for child in known}
        for record in read_records(self._folder):
            # one that nobody wants any more still gets the time to end its engines
            child = by_name.get(record.name, Child(name=record.name, command=(), stage=2, stop_seconds=30))
            running = Running(child, folder=self._folder, root=self._root)
            if running.adopt(record, now):
                self._running[record.name] = running
            else:
                forget_record(self._folder, record.name)
        return sorted(self._running)

    def alive(self) -> list[Record]:
        """What an earlier supervisor wrote down and still runs."""
        return [record for record in read_records(self._folder) if is_alive(record)]

    def ensure(self, child: Child, now: float) -> None:
        """Keep one child running, whatever else is or is not."""
        if child.name not in self._running:
            self._running[child.name] = Running(child, folder=self._folder, root=self._root)
        self._running[child.name].look(now)

    def runs(self, name: str) -> bool:
        return name in self._running

    def end_unlike(self, wanted: Sequence[Child], now: float) -> bool:
        """Ask all that differ from what is wanted to end. Whether none of them runs any more."""
        fingerprints = {child.name: child.fingerprint for child in wanted}
        for name, running in list(self._running.items()):
            if fingerprints.get(name) != running.fingerprint:
                running.terminate(now)
                self._ending[name] = self._running.pop(name)
        return self._bury(now)

    def keep(self, wanted: Sequence[Child], now: float) -> list[str]:
        """Start what is missing, restart what died, end what is not wanted. A sentence for each that died."""
        self.end_unlike(wanted, now)
        for child in wanted:
            if child.name not in self._running and child.name not in self._ending:
                self._running[child.name] = Running(child, folder=self._folder, root=self._root)
        said = [running.look(now) for running in self._running.values()]
        return [sentence for sentence in said if sentence]

    def failing(self, deaths: int) -> Running | None:
        """One that died so often in a row, if any."""
        return next((running for running in self._running.values() if running.failures >= deaths), None)

    def end(self, now: float, *, force: bool = False) -> bool:
        """Bring all to an end, the highest stage first. Whether nothing runs any more; called until it is so."""
        stages = [running.child.stage for running in (*self._running.values(), *self._ending.values())]
        for name, running in list(self._running.items()):
            if force or running.child.stage == max(stages):
                running.terminate(now)
                self._ending[name] = self._running.pop(name)
        return self._bury(now, force=force) and not self._running

    def _bury(self, now: float, *, force: bool = False) -> bool:
        for name, running in list(self._ending.items()):
            if running.gone(now, force=force):
                del self._ending[name]
        return not self._ending
