"""The load generator: a closed loop against one endpoint, level by level, until it is known what it serves within its SLO.

The requests run in an event loop in a thread of its own; the caller's thread only looks on, and may stop it at any moment.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from capacity.bench.asked import Asked, Progress, Swept
from capacity.bench.course import Course
from capacity.bench.scrub import scrubbed

LOOK_SECONDS: Final = 0.25
END_SECONDS: Final = 10.0


def sweep(asked: Asked, *, progress: Callable[[Progress], None], should_stop: Callable[[], bool]) -> Swept:
    """Sweep `asked`, to its end or until `should_stop` says so; within a second after that every request is cancelled.

    What goes wrong with the endpoint is in the answer. What the two functions raise ends the sweep and is raised here."""
    course = Course(asked)
    runner = _Runner(course)
    try:
        while not runner.over(LOOK_SECONDS):
            progress(course.progress)
            if should_stop():
                runner.stop()
        progress(course.progress)
        return scrubbed(runner.result(), asked.token)
    finally:
        runner.stop()
        runner.join()


class _Runner:
    """A course in a thread of its own."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._outcome: Future[Swept] = Future()
        self._over = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._main, name="sweep", daemon=True)
        self._thread.start()
        self._begun.wait()

    def over(self, seconds: float) -> bool:
        return self._over.wait(seconds)

    def stop(self) -> None:
        """Once or often, before or after its end."""
        if not self._over.is_set() and self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._course.stop)
            except RuntimeError:  # it ended in this very moment
                return

    def join(self) -> None:
        self._thread.join(END_SECONDS)

    def result(self) -> Swept:
        return self._outcome.result()

    def _main(self) -> None:
        try:
            self._outcome.set_result(asyncio.run(self._run()))
        except BaseException as error:
            self._outcome.set_exception(error)
        finally:
            self._begun.set()
            self._over.set()

    async def _run(self) -> Swept:
        self._loop = asyncio.get_running_loop()
        self._begun.set()
        return await self._course.run()
