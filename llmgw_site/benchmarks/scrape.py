"""One round of reading engines: their answers over loopback, read, and what a pass takes of them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from capacity.ports import Sample
from capacity.sources.engines import Limits, Skipped, Target, scrape

from .engines import answer_text
from .sizes import Sizes
from .timing import Figure, timed

PATIENT = Limits(seconds_each=60, seconds_in_all=120)  # a slow machine gives a slow figure, and no failure


def measure(sizes: Sizes) -> list[Figure]:
    with engines() as port:
        targets = [Target(replica=f"r{one}", url=f"http://127.0.0.1:{port}/{one}") for one in range(sizes.scrape_endpoints)]
        timing = timed(lambda: check(asyncio.run(scrape(targets, limits=PATIENT))), sizes.scrape_runs)
    note = f"median {timing.words}; {len(answer_text()) / 1000:.0f} kB each"
    return [Figure(name="scrape_500_endpoints_s", value=timing.median_ms / 1000, unit="s", target=3, note=note)]


@contextmanager
def engines() -> Iterator[int]:
    """The port of a process that is the engines."""
    command = [sys.executable, "-m", "llmgw_site.benchmarks.engines"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.communicate()  # closes its input, which ends it


def check(readings: dict[str, Sample | Skipped]) -> None:
    """Every one was read, and with its latencies: a quick round that reads nothing is no figure."""
    for name, found in readings.items():
        if not isinstance(found, Sample) or found.in_flight != 14 or len(found.latencies) != 3:
            raise RuntimeError(f"{name} was not read: {found}")
