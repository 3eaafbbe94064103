"""A quick reading of one replica on this machine: a short sweep of up to eight clients, and how many of them within an SLO."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from capacity.bench.asked import Asked
from capacity.bench.sweep import sweep
from capacity.domain.measurement.judge import judge
from capacity.domain.measurement.types import Judgement, Slo, Sweep

MODEL = "reading"
MOST_CLIENTS = 8
SECONDS = 6.0
READY_SECONDS = 60.0
END_SECONDS = 10.0


class Unread(Exception):
    """The engine could not be read; one sentence."""


def read(slo: Slo, *, input_tokens: int, output_tokens: int) -> Judgement:
    """Start a replica, sweep it, end it, and judge it. Unread where it does not serve."""
    try:
        with engine() as url:
            return swept(url, slo, input_tokens=input_tokens, output_tokens=output_tokens)
    except OSError as failed:
        raise Unread(f"llama.cpp could not be read on this machine: {failed}.") from failed


def swept(url: str, slo: Slo, *, input_tokens: int, output_tokens: int) -> Judgement:
    """OSError where the sweep did not come to its end."""
    asked = Asked(
        endpoint=url,
        model=MODEL,
        slo=slo,
        most=MOST_CLIENTS,
        seconds=SECONDS,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
    )
    found = sweep(asked, progress=lambda progress: None, should_stop=lambda: False)
    if found.ended != "complete":
        raise OSError(found.why.removesuffix("."))
    return judge(Sweep(setting=found.setting, stages=found.stages), slo)


@contextmanager
def engine() -> Iterator[str]:
    """The address of a replica of its own, that is ready; OSError where it does not come up."""
    port = _free_port()
    command = [sys.executable, "-m", "capacity.llama", "--port", str(port), "--model", MODEL]
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
