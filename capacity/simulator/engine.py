"""The simulated engine itself: no sockets and no clock, every call is told the time (seconds of any steady clock).

All streams share one *virtual* clock. It runs with the real one while at most `capacity` requests run, and `running / capacity`
times slower above, so that total tokens/s stop growing at the capacity while TTFT and TPOT grow with each further request:
the behaviour of a saturated continuous batch. A stream's first and last tokens are fixed points on that clock, which is why
one heap of two entries a stream is all there is to do, however many tokens flow.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from capacity.simulator.metrics import EngineMetrics
from capacity.simulator.options import EngineOptions

# Jitter only ever shortens, so that the stated times are bounds at and under the capacity. One per cent a token keeps one
# request too many visible up to capacities of about 120 in the median, and of 280 in the 95th percentile.
TTFT_MARGIN = 0.03  # for the way to the client and back
TPOT_MARGIN = 0.003  # the same: a last token that is late by a few milliseconds is no slower engine
TTFT_JITTER = 0.10
TPOT_JITTER = 0.01

FIRST, LAST = 0, 1


@dataclass(slots=True, eq=False)
class Stream:
    """One request. `tokens` grows to `output_tokens`; `wake` is called when it grew or the stream ended."""

    prompt_tokens: int
    output_tokens: int
    arrived_at: float
    wake: Callable[[], None]
    tokens: int = 0
    state: str = "waiting"  # waiting, running, done, cut
    token_virtual_seconds: float = 0.0
    first_virtual: float = 0.0
    counted_at: float = field(default=0.0)
    counted_virtual: float = 0.0

    @property
    def ended(self) -> bool:
        return self.state in ("done", "cut")


class Engine:
    def __init__(self, options: EngineOptions, now: float) -> None:
        self.options = options
        self.metrics = EngineMetrics(options.model)
        self._random = random.Random(options.seed)  # noqa: S311 - jitter of a simulation
        self._ready_at = now + options.load_seconds
        self._now = now
        self._virtual = 0.0
        self._order = count()
        self._running: set[Stream] = set()
        self._waiting: deque[Stream] = deque()
        self._due: list[tuple[float, int, int, Stream]] = []

    def loading(self, now: float) -> bool:
        return now < self._ready_at

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def submit(self, now: float, *, prompt_tokens: int, output_tokens: int, wake: Callable[[], None]) -> Stream:
        """Take a request: it runs at once where fewer than `max_running` do, else it waits its turn."""
        self.advance(now)
        stream = Stream(prompt_tokens, output_tokens, now, wake)
        self._waiting.append(stream)
        self._admit()
        return stream

    def cut(self, now: float, stream: Stream) -> None:
        """Drop a request whose client went away or whose engine stops; nothing happens where it has ended."""
        self.advance(now)
        if stream.ended:
            return
        if stream.state == "running":
            self._running.discard(stream)
        else:
            self._waiting.remove(stream)
        stream.state = "cut"
        self.metrics.finished("abort")
        self._admit()
        stream.wake()

    def cut_all(self, now: float) -> None:
        for stream in [*self._waiting, *self._running]:
            self.cut(now, stream)

    def advance(self, now: float) -> None:
        """Bring everything up to `now`: first tokens and ends at their own instants, the tokens between them counted."""
        while (due := self._next_due()) is not None and self._real_time_of(due[0]) <= now:
            heapq.heappop(self._due)
            self._move_to(self._real_time_of(due[0]), due[0])
            self._reach(due[2], due[3])
        self._move_to(now, self._virtual + max(0.0, now - self._now) / self._slowness())
        for stream in self._flowing():
            self._count_tokens(stream)

    def next_event_at(self) -> float | None:
        """When the next first or last token is due if nothing else happens; None when nothing runs."""
        due = self._next_due()
        return None if due is None else self._real_time_of(due[0])

    def kv_cache_usage(self) -> float:
        return min(1.0, self.running / self.options.max_running)

    def _slowness(self) -> float:
        return max(1.0, self.running / self.options.capacity)

    def _real_time_of(self, virtual: float) -> float:
        return self._now + max(0.0, virtual - self._virtual) * self._slowness()

    def _move_to(self, now: float, virtual: float) -> None:
        self._now = max(self._now, now)
        self._virtual = max(self._virtual, virtual)

    def _next_due(self) -> tuple[float, int, int, Stream] | None:
        while self._due and self._due[0][3].ended:
            heapq.heappop(self._due)
        return self._due[0] if self._due else None

    def _admit(self) -> None:
        while self._waiting and self.running < self.options.max_running:
            self._start(self._waiting.popleft())

    def _start(self, stream: Stream) -> None:
        stream.state = "running"
        self._running.add(stream)
        first = self.options.ttft_seconds * (1 - TTFT_MARGIN - TTFT_JITTER * self._random.random())
        stream.token_virtual_seconds = self.options.tpot_seconds * (1 - TPOT_MARGIN - TPOT_JITTER * self._random.random())
        stream.first_virtual = self._virtual + first
        self._push(stream.first_virtual, FIRST, stream)

    def _push(self, virtual: float, kind: int, stream: Stream) -> None:
        heapq.heappush(self._due, (virtual, next(self._order), kind, stream))

    def _reach(self, kind: int, stream: Stream) -> None:
        if kind == FIRST:
            self._first_token(stream)
        if kind == LAST or stream.output_tokens == 1:
            self._finish(stream)

    def _first_token(self, stream: Stream) -> None:
        stream.tokens = 1
        stream.counted_at, stream.counted_virtual = self._now, self._virtual
        self.metrics.first_token(stream.prompt_tokens, self._now - stream.arrived_at)
        stream.wake()
        if stream.output_tokens > 1:
            length = (stream.output_tokens - 1) * stream.token_virtual_seconds
            self._push(stream.first_virtual + length, LAST, stream)

    def _finish(self, stream: Stream) -> None:
        self._add_tokens(stream, stream.output_tokens)
        stream.state = "done"
        self._running.discard(stream)
        self.metrics.finished("length", seconds=self._now - stream.arrived_at)
        stream.wake()
        self._admit()

    def _flowing(self) -> Iterator[Stream]:
        return (stream for stream in self._running if stream.tokens)

    def _count_tokens(self, stream: Stream) -> None:
        steps = (self._virtual - stream.first_virtual) / stream.token_virtual_seconds
        # The last token comes with the end of the stream alone, whatever rounding says.
        self._add_tokens(stream, min(1 + int(steps + 1e-9), stream.output_tokens - 1))

    def _add_tokens(self, stream: Stream, total: int) -> None:
        new = total - stream.tokens
        if new <= 0:
            return
        self.metrics.further_tokens(new, stream.token_virtual_seconds * self._pace_since(stream))
        stream.tokens = total
        stream.counted_at, stream.counted_virtual = self._now, self._virtual
        stream.wake()

    def _pace_since(self, stream: Stream) -> float:
        """Real seconds a virtual one, since its tokens were last counted: they flow evenly, whenever somebody looks."""
        virtual = self._virtual - stream.counted_virtual
        return (self._now - stream.counted_at) / virtual if virtual > 0 else self._slowness()
