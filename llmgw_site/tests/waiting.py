"""Children that wait, waiting for what must come, and ports that nobody else looks for."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable

DEADLINE_SECONDS = 20
WAITS = (sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()")


def until(condition: Callable[[], object]) -> object:
    """What the condition gives once it is true."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline, "it never came"
        os.sched_yield()
    return value


def free_port() -> int:
    """One that the system hands out: test processes that look for one from the same number on would meet."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
