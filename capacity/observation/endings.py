"""How a process ended, as a person would say it."""

from __future__ import annotations

import signal


def ending_words(exit_code: int | None, last_words: str, *, was_ready: bool) -> str:
    """`killed by signal 9 (SIGKILL), last words: …`. `exit_code`: negative is the signal, None is not known; then what the host
    said stands alone."""
    if exit_code is None:
        how = "ended, it is not known how" if was_ready else ""
    else:
        how = f"killed by {_signal(-exit_code)}" if exit_code < 0 else f"exited with code {exit_code}"
    return f"{how}, last words: {last_words}" if how and last_words else how or last_words


def _signal(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
