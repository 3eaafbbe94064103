"""What flags and kinds of a sweep are called on pages and in lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .types import Flag, Kind, Latency, Stage
from .weak import weaknesses

FLAGS: Final[Mapping[Flag, str]] = {
    "weak": "weak: short, few requests, cut off, or its client could not keep up",
    "non_monotonic": "does not count: it meets the SLO above a level that does not",
    "asked": "level as asked for: the file does not say what was in flight",
    "repeated": "several runs of this level: the worse latencies, the mean tokens/s",
    "errors": "more errors than the SLO allows",
    "errors_unknown": "the file does not say how many requests failed",
    "not_steady": "not steady: its queue still grew when it ended",
    "estimated": "level estimated from mean TTFT and mean TPOT",
    "client_queue": "rate and cap together: TTFT leaves out the wait in the client's own queue",
    "input_tokens": "input tokens: there is no output",
    "simulated": "simulated: no engine was measured",
}
KINDS: Final[Mapping[Kind, str]] = {
    "located": "located: the next level missed the SLO",
    "at_least": "at least: nothing above was judged",
    "never_met": "never met the SLO",
    "not_binding": "not binding: no latency was measured",
}
LATENCY: Final[Mapping[Latency, str]] = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "end to end"}


def flag_words(stage: Stage) -> list[str]:
    """What is to be known of a stage, a weak one with its numbers."""
    return [_weak(stage) if flag == "weak" else FLAGS[flag] for flag in sorted(stage.flags)]


def _weak(stage: Stage) -> str:
    return f"weak: {'; '.join(weaknesses(stage)) or 'cut off, or its client could not keep up'}"
