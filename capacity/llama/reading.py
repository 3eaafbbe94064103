"""A quick reading of one replica on this machine: what it serves at 1, 2, 4 and 8 clients, and how many of them within an SLO.

Closed loop: each client sends its next request when the last one has ended. Percentiles are by nearest rank.
"""

from __future__ import annotations

import json
import math
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

STAGES = (1, 2, 4, 8)
REQUESTS_A_CLIENT = 3
READY_SECONDS = 60.0
TIMEOUT_SECONDS = 120.0
END_SECONDS = 10.0
PERCENT = 95


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Limits of the 95th percentiles, in milliseconds."""

    ttft_ms: int
    tpot_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One request. `tpot_seconds` None: it had one token only."""

    tokens: int
    ttft_seconds: float
    tpot_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What came of so many clients at once: rates a second, 95th percentiles in milliseconds."""

    concurrency: int
    requests: int
    requests_per_second: float
    tokens_per_second: float
    ttft_ms: float
    tpot_ms: float

    def meets(self, target: Target) -> bool:
        return self.ttft_ms <= target.ttft_ms and self.tpot_ms <= target.tpot_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """`best` None: not even one client was served within the target. `kind`: located, at_least or never_met."""

    stages: tuple[Stage, ...]
    best: Stage | None
    kind: str


class Unread(Exception):
    """The engine could not be read; one sentence."""


def read(target: Target, *, prompt_words: int, output_tokens: int) -> Reading:
    """Start a replica, read it stage by stage until one misses the target, end it. Unread where it does not serve."""
    stages: list[Stage] = []
    try:
        with engine() as url:
            answer(url, prompt_words, output_tokens)  # the first one fills caches and is not counted
            for clients in STAGES:
                stages.append(stage(url, clients, prompt_words, output_tokens))
                if not stages[-1].meets(target):
                    break
    except OSError as failed:
        raise Unread(f"llama.cpp could not be read on this machine: {failed}.") from failed
    return judged(stages, target)


def judged(stages: Sequence[Stage], target: Target) -> Reading:
    """The highest stage that met the target, as all below it did."""
    met = [row for number, row in enumerate(stages) if all(below.meets(target) for below in stages[: number + 1])]
    kind = "never_met" if not met else "at_least" if len(met) == len(stages) else "located"
    return Reading(stages=tuple(stages), best=met[-1] if met else None, kind=kind)


def stage(url: str, clients: int, prompt_words: int, output_tokens: int) -> Stage:
    began = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(lambda _: answer(url, prompt_words, output_tokens), range(clients * REQUESTS_A_CLIENT)))
    return summed(clients, answers, time.monotonic() - began)


def summed(clients: int, answers: Sequence[Answer], seconds: float) -> Stage:
    paces = [row.tpot_seconds for row in answers if row.tpot_seconds is not None]
    return Stage(
        concurrency=clients,
        requests=len(answers),
        requests_per_second=len(answers) / seconds,
        tokens_per_second=sum(row.tokens for row in answers) / seconds,
        ttft_ms=1000 * percentile([row.ttft_seconds for row in answers]),
        tpot_ms=1000 * percentile(paces),
    )


def percentile(values: Sequence[float]) -> float:
    """The 95th by nearest rank; infinity of nothing."""
    return sorted(values)[math.ceil(PERCENT / 100 * len(values)) - 1] if values else math.inf


def answer(url: str, prompt_words: int, output_tokens: int) -> Answer:
    """One streamed chat completion; OSError where it fails."""
    document = {
        "messages": [{"role": "user", "content": "word " * prompt_words}], "max_tokens": output_tokens, "stream": True,
    }  # fmt: skip
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(document).encode(), head)  # noqa: S310
    began = time.monotonic()
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as stream:  # noqa: S310 - our own engine on loopback
        times = [time.monotonic() for line in stream if has_token(line)]
    if not times:
        raise OSError("it answered without a token")
    pace = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else None
    return Answer(tokens=len(times), ttft_seconds=times[0] - began, tpot_seconds=pace)


def has_token(line: bytes) -> bool:
    if not line.startswith(b"data: {"):
        return False
    choices = json.loads(line[len("data: ") :]).get("choices") or [{}]
    return bool(choices[0].get("delta", {}).get("content"))


@contextmanager
def engine() -> Iterator[str]:
    """The address of a replica of its own, that is ready; OSError where it does not come up."""
    port = _free_port()
    command = [sys.executable, "-m", "capacity.llama", "--port", str(port), "--model", "reading"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(url, process)
            yield url
        finally:
            _end(process)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        if process.poll() is not None:
            last = process.stderr.read().decode(errors="replace").strip().splitlines() if process.stderr else []
            raise OSError(last[-1] if last else "it ended at once")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=1):  # noqa: S310 - our own engine on loopback
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
