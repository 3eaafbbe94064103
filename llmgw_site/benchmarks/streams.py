"""A sweep's level of many streams: how far its client and the simulated engine, a process each, fall behind the stated times."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from capacity.bench.asked import Asked, Swept
from capacity.bench.sweep import sweep
from capacity.domain.measurement.types import Slo, Stage
from capacity.simulator.engine import TPOT_JITTER, TPOT_MARGIN, TTFT_JITTER, TTFT_MARGIN

from .sizes import Sizes
from .timing import Figure

TTFT_MS, TPOT_MS = 200.0, 40.0
LEAST_PERCENT = 0.001  # what chance makes negative is no overhead


def measure(sizes: Sizes) -> list[Figure]:
    with simulator(sizes.sweep_streams) as url:
        found = swept(url, sizes)
    stage = checked(found)
    percent = max(LEAST_PERCENT, 100 * (stated(sizes) / (stage.tokens_per_second or 0.0) - 1))
    details = found.evidence["levels"][str(stage.asked)]
    note = (
        f"{stage.tokens_per_second:,.0f} tokens/s of {stated(sizes):,.0f}; TPOT p95 {stage.tpot_ms['p95']:.1f} of "
        f"{TPOT_MS:g} ms; the client took {100 * details['client_busy']:.0f} % of a core"
    )
    return [Figure(name="sweep_512_streams_overhead_percent", value=percent, unit="%", target=5, note=note)]


def swept(url: str, sizes: Sizes) -> Swept:
    asked = Asked(
        endpoint=url,
        model="bench",
        slo=Slo(bounds=()),
        levels=(sizes.sweep_streams,),
        seconds=sizes.sweep_seconds,
        output_tokens=sizes.sweep_tokens,
        input_tokens=128,
    )
    return sweep(asked, progress=lambda progress: None, should_stop=lambda: False)


def checked(found: Swept) -> Stage:
    """A level with errors, or none, is no figure."""
    if found.ended != "complete" or any(stage.errors for stage in found.stages):
        raise RuntimeError(f"The level was not measured: {found.why}")
    return found.stages[0]


def stated(sizes: Sizes) -> float:
    """Tokens a second that the engine would serve to a client that takes no time at all. By chance its times are a little under
    those that it states (capacity.simulator.engine)."""
    first = TTFT_MS * (1 - TTFT_MARGIN - TTFT_JITTER / 2)
    further = TPOT_MS * (1 - TPOT_MARGIN - TPOT_JITTER / 2)
    return 1000 * sizes.sweep_streams * sizes.sweep_tokens / (first + (sizes.sweep_tokens - 1) * further)


@contextmanager
def simulator(capacity: int) -> Iterator[str]:
    """The address of a simulated engine in a process of its own."""
    command = [sys.executable, "-m", "capacity.simulator", "--port", "0", "--model", "bench", "--capacity", str(capacity)]
    command += ["--ttft-ms", str(TTFT_MS), "--tpot-ms", str(TPOT_MS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split(" at ")[1].split(": ")[0]
        finally:
            process.terminate()
