"""Signals as something to wait for, so that none is lost and none strikes in the middle of a step."""

from __future__ import annotations

import os
import select
import signal
from types import TracebackType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Asked(Exception):
    """Somebody asked the supervisor to end."""


class Interrupts:
    """While open, signals to end raise `Asked` out of `pause` and out of nothing else. A child's death shortens a pause."""

    def __enter__(self) -> Interrupts:
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(write, False)
        self._write = write
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (*ENDING, signal.SIGCHLD):
            signal.signal(number, _noted)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        signal.set_wakeup_fd(-1)
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self._read)
        os.close(self._write)

    def pause(self, seconds: float) -> None:
        """Wait. `Asked` when a signal to end has come since the last pause."""
        ready, _, _ = select.select([self._read], [], [], seconds)
        if ready and set(os.read(self._read, 4_096)) & set(ENDING):
            raise Asked


def _noted(number: int, frame: object) -> None:
    """The signal's number went into the pipe already."""
