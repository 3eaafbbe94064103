"""What must hold at every moment, whatever fails, and what must hold again soon afterwards. Pure: observations in, words out."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import pairwise

from .observation import Bound, Engine, Host, Observation, Row

REMEMBERED_SECONDS = 200.0  # a start is asked for again for two minutes, and lies in a queue for one
FORGOTTEN_SECONDS = 12.0  # a report each 5 s, a pass each second


class Watch:
    """Observations in their order; `see` says what is wrong in the newest one, and each thing once."""

    def __init__(self, lost_after_seconds: float) -> None:
        self._lost_after = lost_after_seconds
        self._seen: deque[Observation] = deque()
        self._rowless: dict[int, float] = {}
        self._said: set[str] = set()

    def see(self, now: Observation) -> list[str]:
        before = self._seen[-1] if self._seen else now
        self._seen.append(now)
        while self._seen[0].at < now.at - REMEMBERED_SECONDS:
            self._seen.popleft()
        lost = self._lost(before) | self._lost(now)
        found = [
            *doubled(now),
            *strays(now),
            *overfull(now),
            *late_writers(now),
            *self._beyond(before, now, lost),
            *self._forgotten(now, lost),
        ]
        fresh = [sentence for sentence in found if sentence not in self._said]
        self._said.update(fresh)
        return [f"{sentence} (at {now.at:.1f})" for sentence in fresh]

    def _lost(self, seen: Observation) -> set[str]:
        """Hosts that may be replaced by now: what is on them counts for nothing."""
        return {host.name for host in seen.hosts.values() if may_be_lost(host, self._lost_after)}

    def _beyond(self, before: Observation, now: Observation, lost: set[str]) -> Iterator[str]:
        """A bound may be lowered below what runs; but nothing new may come while it is exceeded."""
        known = {row.name: row for row in now.rows}
        new_rows = {row.name for row in now.rows} - {row.name for row in before.rows}
        new_pids = {engine.pid for engine in now.engines} - {engine.pid for engine in before.engines}
        rows = [row for row in now.rows if row.host not in lost]
        engines = [engine for engine in now.engines if engine.host not in lost]
        fresh_rows = [row for row in rows if row.name in new_rows and row.intent == "start"]
        fresh_engines = [engine for engine in engines if engine.pid in new_pids]
        for bound in now.bounds:
            for row in fresh_rows:
                yield from self._judge(bound, row, rows, now, since=row.created_at, what="replicas on record")
            for engine in fresh_engines:
                row = known.get(engine.replica or "")
                since = row.created_at if row else now.at - REMEMBERED_SECONDS
                yield from self._judge(bound, engine, engines, now, since=since, what="processes")

    def _judge(
        self, bound: Bound, new: Row | Engine, counted: Iterable[Row | Engine], now: Observation, *, since: float, what: str
    ) -> Iterator[str]:
        if new.model not in bound.models:
            return
        most = self._most(bound, since - bound.late_seconds)
        count = sum(now.units[one.model] if bound.counts == "units" else 1 for one in counted if one.model in bound.models)
        if most is not None and count > most:
            name = new.name if isinstance(new, Row) else new.replica
            yield f"{bound.name}: {count} {bound.counts} ({what}) when {name} came, and at most {most} were allowed"

    def _most(self, bound: Bound, since: float) -> int | None:
        """The highest number in force at some time since then; None where there was none at some time."""
        found: list[int | None] = []
        for seen in reversed(self._seen):
            found += [other.most for other in seen.bounds if other.name == bound.name]
            if seen.at <= since:
                break
        return None if None in found else max(number for number in found if number is not None)

    def _forgotten(self, now: Observation, lost: set[str]) -> Iterator[str]:
        """A process whose host reports and that the passes nevertheless do not count."""
        names = {row.name for row in now.rows}
        reach = {host.name for host in now.hosts.values() if host.silent_seconds is not None and host.silent_seconds < 8} - lost
        rowless = {e.pid: e for e in now.engines if e.replica is not None and e.replica not in names and e.host in reach}
        self._rowless = {pid: self._rowless.get(pid, now.at) for pid in rowless}
        for pid, since in self._rowless.items():
            if now.at - since > FORGOTTEN_SECONDS:
                yield f"{rowless[pid].replica} runs on {rowless[pid].host} and nobody counts it"


def may_be_lost(host: Host, after_seconds: float) -> bool:
    """Near enough to the edge that a pass may have called it lost."""
    return host.silent_seconds is not None and host.silent_seconds > after_seconds - 3


def doubled(now: Observation) -> Iterator[str]:
    """One process a replica, whichever hosts they are on."""
    counts = Counter(engine.replica for engine in now.engines if engine.replica is not None)
    for name, count in counts.items():
        if count > 1:
            yield f"{name} runs {count} times"


def strays(now: Observation) -> Iterator[str]:
    """Each process is on record at its host."""
    for engine in now.engines:
        if engine.replica is None:
            yield f"pid {engine.pid}, an engine of {engine.model} on {engine.host}, is on no record of its host"


def overfull(now: Observation) -> Iterator[str]:
    """No host runs more than it offers, whatever the control plane thinks of it."""
    used: Counter[str] = Counter()
    for engine in now.engines:
        used[engine.host] += now.units[engine.model]
    for name, units in used.items():
        if units > now.hosts[name].offers:
            yield f"{name} runs {units} units and offers {now.hosts[name].offers}"


def late_writers(now: Observation) -> Iterator[str]:
    """One writer at a time: each pass has a turn of its own, and none writes after a later one."""
    for first, second in pairwise(now.generations):
        if second <= first:
            yield f"a pass of generation {second} was written after one of generation {first}"


def unsteady(now: Observation) -> list[str]:
    """Why the site is not at rest: empty once what is wanted is what is on record, is ready, and is what runs."""
    found = [f"{host.name} is silent" for host in now.hosts.values() if host.silent_seconds is None or host.silent_seconds > 8]
    found += [f"{row.name} is {row.intent or row.state}" for row in now.rows if row.intent or row.state != "ready"]
    running = Counter(engine.replica for engine in now.engines)
    on_record = Counter(row.name for row in now.rows)
    found += [f"{name} runs and is not on record" for name in running - on_record]
    found += [f"{name} is on record and does not run" for name in on_record - running]
    for model, decided in now.decided.items():
        found += _unsettled(now, model, decided.outcome, decided.reason, decided.at_least)
    return found


def _unsettled(now: Observation, model: str, outcome: str, reason: str, at_least: int) -> Iterator[str]:
    count = sum(1 for row in now.rows if row.model == model)
    if outcome != "hold":
        yield f"{model}: {outcome}, {reason}"
    if count < at_least:
        yield f"{model} has {count} replicas and wants {at_least}"
    for bound in now.bounds:
        if bound.most is not None and model in bound.models and _count(now, bound) > bound.most:
            yield f"{bound.name}: {_count(now, bound)} {bound.counts}, and at most {bound.most} are allowed"


def _count(now: Observation, bound: Bound) -> int:
    return sum(now.units[row.model] if bound.counts == "units" else 1 for row in now.rows if row.model in bound.models)
