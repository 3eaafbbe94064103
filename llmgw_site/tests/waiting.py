"""Children that wait, and waiting for what must come."""

from __future__ import annotations

import os
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
