"""One level of a sweep: so many clients, each of which sends its next request when its last one has ended."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from capacity.bench.stream import Answer, Chunks

Send = Callable[[Chunks], Awaitable[Answer]]
Heard = Callable[[int, int, bool], None]

LEAST_WARM_SECONDS: Final = 1.0
COLD_FAULTS: Final = 3
"""A client whose first requests all failed is as warm as it gets."""
LEAST_ERRORS: Final = 10
"""So many errors, and one a client, before a level is given up early: a single bad moment is none."""
REST_SECONDS: Final = 0.05
"""After an error; short, so that the share of errors stays what the clients would see."""
LAG_EVERY_SECONDS: Final = 0.02
LAG_PERCENT: Final = 99
LONG_REST_SECONDS: Final = 0.5
"""After one without a connection: what is not there is not hammered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """`ramp_seconds`: over so long the clients begin one after the other, so that they do not march in step. `seconds`: the
    window that counts. `max_error_share`: with more errors than that it ends early."""

    level: int
    seconds: float
    ramp_seconds: float
    patience_seconds: float
    max_error_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What happened while it was measured: `answers` ended in it, whenever they began; `incomplete` still ran at its end.
    `chunks` of text came in it, to whichever request. `busy`: share of one core that this client needed. `lag_seconds`: how late
    this client woke up, 99th percentile: a late client takes its own delay for the engine's."""

    level: int
    seconds: float
    answers: Sequence[Answer]
    incomplete: int
    mean_in_flight: float
    chunks: int
    busy: float
    lag_seconds: float = 0.0
    cut_short: bool = False


class ClosedLoop:
    """To be run once, in the loop in which it was made."""

    def __init__(
        self, load: Load, send: Send, *, heard: Heard = lambda running, ended, measuring: None,
        opened: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """`heard` is told of requests in flight, of those that ended in the window, and whether it is open; `opened` once when
        it opens."""
        self._load = load
        self._send = send
        self._heard = heard
        self._opened_call = opened
        self._cold = load.level
        self._warm = asyncio.Event()
        self._enough = asyncio.Event()
        self._came = asyncio.Event()
        self._served = False
        self._measuring = False
        self._answers: list[Answer] = []
        self._errors = 0
        self._chunks = 0
        self._running = 0
        self._flight_seconds = 0.0
        self._changed_at = self._opened_at = time.monotonic()
        self._cpu_at = 0.0
        self._lags: list[float] = []

    async def run(self) -> Window:
        """Warm up, measure, and cut what still runs. Cancelled, it leaves no request behind."""
        clients = [asyncio.create_task(self._client(number)) for number in range(self._load.level)]
        clients.append(asyncio.create_task(self._watch_lag()))
        try:
            self._open()
            await self._warm_up()
            if self._served:
                self._open()
                self._measuring = True
                self._opened_call()
                await self._measure()
            return self._window()
        finally:
            for client in clients:
                client.cancel()
            await asyncio.gather(*clients, return_exceptions=True)

    async def _warm_up(self) -> None:
        """Until every client has had its first answer, and for a second at least."""
        await self._warm.wait()
        await asyncio.sleep(self._opened_at + min(LEAST_WARM_SECONDS, self._load.seconds) - time.monotonic())

    async def _measure(self) -> None:
        await _either(self._enough, self._load.seconds)
        if not self._answers:  # each takes longer than the window: one at least is waited for
            await _either(self._came, self._load.patience_seconds)

    async def _watch_lag(self) -> None:
        while True:
            due = time.monotonic() + LAG_EVERY_SECONDS
            await asyncio.sleep(LAG_EVERY_SECONDS)
            self._lags.append(max(0.0, time.monotonic() - due))

    async def _client(self, number: int) -> None:
        await asyncio.sleep(self._load.ramp_seconds * number / self._load.level)
        faults, cold = 0, True
        while True:
            answer = await self._request()
            faults = faults + 1 if answer.fault else 0
            if cold and (not answer.fault or answer.fault.kind == "timeout" or faults == COLD_FAULTS):
                cold = False
                self._warmed()
            self._take(answer)
            if answer.fault:
                await asyncio.sleep(LONG_REST_SECONDS if answer.fault.kind == "unreachable" else REST_SECONDS)

    def _warmed(self) -> None:
        self._cold -= 1
        if not self._cold:
            self._warm.set()

    async def _request(self) -> Answer:
        self._count(+1)
        try:
            return await self._send(self._add)
        finally:
            self._count(-1)

    def _take(self, answer: Answer) -> None:
        self._served = self._served or answer.fault is None
        self._answers.append(answer)
        self._errors += answer.fault is not None
        self._came.set()
        if self._errors >= max(LEAST_ERRORS, self._load.level) and self._errors > self._load.max_error_share * len(self._answers):
            self._enough.set()
        self._tell()

    def _add(self, chunks: int) -> None:
        self._chunks += chunks

    def _count(self, change: int) -> None:
        now = time.monotonic()
        self._flight_seconds += self._running * (now - self._changed_at)
        self._changed_at = now
        self._running += change

    def _tell(self) -> None:
        self._heard(self._running, len(self._answers) if self._measuring else 0, self._measuring)

    def _open(self) -> None:
        """Nothing from before counts."""
        self._count(0)
        self._answers, self._errors, self._chunks, self._flight_seconds, self._lags = [], 0, 0, 0.0, []
        self._enough.clear()
        self._came.clear()
        self._opened_at, self._cpu_at = self._changed_at, time.thread_time()

    def _window(self) -> Window:
        self._count(0)
        seconds = max(self._changed_at - self._opened_at, 1e-9)
        return Window(
            level=self._load.level,
            seconds=seconds,
            answers=tuple(self._answers),
            incomplete=self._running,
            mean_in_flight=self._flight_seconds / seconds,
            chunks=self._chunks,
            busy=(time.thread_time() - self._cpu_at) / seconds,
            lag_seconds=_rank(self._lags, LAG_PERCENT),
            cut_short=self._enough.is_set() or not self._served,
        )


def _rank(values: Sequence[float], percent: int) -> float:
    """The percentile by nearest rank; 0 of nothing."""
    return sorted(values)[math.ceil(percent * len(values) / 100) - 1] if values else 0.0


async def _either(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, so long at most."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
