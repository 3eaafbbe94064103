"""The course of one sweep: preparation, one level after the other, and what came of it."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from capacity.bench import summary
from capacity.bench.asked import TOOL, Asked, Doing, Ended, Progress, Swept
from capacity.bench.closed_loop import COLD_FAULTS, LEAST_WARM_SECONDS, ClosedLoop, Load, Send, Window
from capacity.bench.facts import Counters, between, counters
from capacity.bench.levels import Tried, knee, levels_left, next_level
from capacity.bench.prepare import Asker, Ready, Unsweepable
from capacity.bench.stream import session
from capacity.domain.measurement.types import Setting, Stage
from capacity.domain.measurement.verdict import verdict

MOST_RAMP_SECONDS: Final = 10.0
RAMP_SHARE: Final = 0.5


class Course:
    """To be run once. `progress` may be read from any thread at any time; `stop` is called in the loop."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.progress = Progress(doing="preparing")
        self._stop_asked = False
        self._task: asyncio.Task[None] | None = None
        self._ready: Ready | None = None
        self._stages: list[Stage] = []
        self._tried: list[Tried] = []
        self._details: dict[str, dict[str, Any]] = {}
        self._level_seconds = 0.0
        self._level_began = time.monotonic()

    def stop(self) -> None:
        self._stop_asked = True
        if self._task is not None:
            self._task.cancel()

    async def run(self) -> Swept:
        self._task = asyncio.create_task(self._levels())
        if self._stop_asked:
            self._task.cancel()
        ended, why = await self._ending()
        self._say("over")
        return self._swept(ended, why)

    async def _ending(self) -> tuple[Ended, str]:
        assert self._task is not None
        try:
            await self._task
        except Unsweepable as fault:
            return "failed", str(fault)
        except asyncio.CancelledError:
            if not self._stop_asked:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)
                raise
            return "stopped", f"It was stopped after {_levels(len(self._stages))}."
        return "complete", self._completed()

    async def _levels(self) -> None:
        async with session(self._asked.token, self._asked.allowed_networks) as http:
            asker = Asker(http, self._asked)
            self._ready = await asker.prepare()
            send = asker.sends(self._ready)
            while (level := self._next()) is not None:
                await self._level(level, send, asker.base)

    def _next(self) -> int | None:
        return next_level(self._tried, levels=self._asked.levels, most=self._asked.most)

    async def _level(self, level: int, send: Send, base: str) -> None:
        """What this client's own lateness may have failed is measured once more: the run in which it was less late counts."""
        window, counted = await self._measure(level, send, base)
        if summary.fails_by_lag(window, self._asked):
            again, counted_again = await self._measure(level, send, base)
            late = max(window.lag_seconds, again.lag_seconds)
            if again.lag_seconds < window.lag_seconds:
                window, counted = again, counted_again
            counted = counted | {"client_lag_ms_of_the_other_run": round(1000 * late, 1)}
        self._take(window, counted)

    async def _measure(self, level: int, send: Send, base: str) -> tuple[Window, dict[str, float]]:
        self._level_began = time.monotonic()
        self._say("warming_up", level)
        engine = _EngineWindow(base, self._asked)
        heard = lambda running, ended, open_: self._say("measuring" if open_ else "warming_up", level, running, ended)  # noqa: E731
        window = await ClosedLoop(self._load(level), send, heard=heard, opened=engine.open).run()
        self._level_seconds = time.monotonic() - self._level_began
        _check_alive(window)
        return window, await engine.close()

    def _load(self, level: int) -> Load:
        one = self._ready.one_seconds if self._ready else 0.0
        return Load(
            level=level,
            seconds=self._asked.seconds,
            ramp_seconds=min(one, RAMP_SHARE * self._asked.seconds, MOST_RAMP_SECONDS),
            patience_seconds=self._asked.timeout_seconds,
            max_error_share=self._asked.slo.max_error_share,
        )

    def _take(self, window: Window, counted: dict[str, float]) -> None:
        stage = summary.stage_of(window, self._asked, simulated=self._ready is not None and self._ready.facts.simulated)
        meets = verdict(stage, self._asked.slo).outcome == "meets"
        self._stages.append(stage)
        self._tried.append(Tried(level=window.level, meets=meets, tokens_per_second=stage.tokens_per_second))
        self._details[str(window.level)] = summary.details_of(window) | counted

    def _say(self, doing: Doing, level: int | None = None, in_flight: int = 0, finished: int = 0) -> None:
        left = 0 if doing == "over" else levels_left(self._tried, levels=self._asked.levels, most=self._asked.most)
        self.progress = Progress(
            doing=doing,
            level=level,
            stages=tuple(self._stages),
            levels_left=left,
            seconds_left=self._seconds_left(left),
            in_flight=in_flight,
            finished=finished,
        )

    def _seconds_left(self, levels: int) -> float:
        """Each level is taken to last as long as the one before, of which the one under way has used a part."""
        if not levels:
            return 0.0
        one = self._ready.one_seconds if self._ready else 0.0
        each = self._level_seconds or self._asked.seconds + max(LEAST_WARM_SECONDS, 2 * one)
        return max(0.0, levels * each - min(time.monotonic() - self._level_began, each))

    def _completed(self) -> str:
        if self._asked.levels is not None:
            return f"All {_levels(len(self._stages))} were measured."
        passed = max((row.level for row in self._tried if row.meets), default=0)
        missed = min((row.level for row in self._tried if not row.meets), default=None)
        if missed is not None:
            return f"Level {missed} missed the SLO" + (f", level {passed} met it." if passed else ".")
        if passed < self._asked.most:
            return f"Level {passed} met the SLO; it went no higher, as tokens a second had stopped growing."
        return f"Level {passed} met the SLO, and none higher was allowed."

    def _swept(self, ended: Ended, why: str) -> Swept:
        return Swept(
            setting=self._setting(),
            stages=tuple(sorted(self._stages, key=lambda stage: stage.asked or 0)),
            ended=ended,
            why=why,
            knee=knee(self._tried),
            evidence=self._evidence(),
        )

    def _setting(self) -> Setting:
        facts = self._ready.facts if self._ready else None
        return Setting(
            tool=TOOL,
            model=self._asked.model,
            engine=facts.engine if facts else None,
            engine_version=facts.version if facts else None,
            input_tokens=self._length("input_tokens_mean"),
            output_tokens=self._length("output_tokens_mean") if self._asked.streams else None,
            dataset="one prompt of random words" if self._asked.same_prompt else "random words, each prompt new",
            variant=None if self._asked.api == "chat" else self._asked.api,
            drawn=self._ready is not None and self._asked.streams and not self._ready.pinned,
            hints=self._hints(),
        )

    def _hints(self) -> dict[str, str]:
        found = knee(self._tried)
        told = {f"engine {name}": str(value) for name, value in (self._ready.facts.told.items() if self._ready else ())}
        served = {"served name": self._asked.served_name} if self._asked.served_name else {}
        return told | served | ({} if found is None else {"knee": str(found)})

    def _length(self, name: str) -> int | None:
        """The mean of all that ended well; None where nobody counted."""
        rows = [(row[name], stage.requests or 0) for row, stage in zip(self._details.values(), self._stages, strict=True)]
        known = [(value, weight) for value, weight in rows if value is not None and weight]
        return round(sum(value * weight for value, weight in known) / sum(weight for _, weight in known)) if known else None

    def _evidence(self) -> dict[str, Any]:
        names = ("api", "seconds", "input_tokens", "output_tokens", "same_prompt")
        asked = {name: getattr(self._asked, name) for name in names}
        return {"asked": asked, "levels": self._details, "cache_hit_rate": self._hit_rate(), **self._endpoint()}

    def _hit_rate(self) -> float | None:
        """Of the engine's prefix cache, over all levels; None where it does not say."""
        known = [rate for row in self._details.values() if (rate := row.get("prefix_cache_hit_rate")) is not None]
        return sum(known) / len(known) if known else None

    def _endpoint(self) -> dict[str, Any]:
        if self._ready is None:
            return {}
        ready = self._ready
        stream = (
            {"output_pinned": ready.pinned, "tokens_from": "usage" if ready.counts else "chunks"} if self._asked.streams else {}
        )
        return {"engine": dict(ready.facts.told), "simulated": ready.facts.simulated, **stream}


class _EngineWindow:
    """What the engine's own counters say at both ends of a level's window; read beside the requests, never waited for by them."""

    def __init__(self, base: str, asked: Asked) -> None:
        self._base = base
        self._allowed = asked.allowed_networks
        self._before: asyncio.Task[tuple[Counters | None, float]] | None = None

    def open(self) -> None:
        self._before = asyncio.create_task(self._read())

    async def close(self) -> dict[str, float]:
        if self._before is None:
            return {}
        (before, began), (after, ended) = await self._before, await self._read()
        return between(before, after, ended - began)

    async def _read(self) -> tuple[Counters | None, float]:
        return await counters(self._base, self._allowed), time.monotonic()


def _check_alive(window: Window) -> None:
    """An endpoint that nobody can connect to any longer says nothing of its capacity."""
    faults = [answer.fault for answer in window.answers[-max(window.level, COLD_FAULTS) :]]
    if faults and all(fault is not None and fault.kind == "unreachable" for fault in faults):
        raise Unsweepable(f"It stopped answering at level {window.level}: {faults[-1].why if faults[-1] else ''}")


def _levels(number: int) -> str:
    return "1 level" if number == 1 else f"{number} levels"
