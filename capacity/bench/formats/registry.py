"""Which formats are read, in the order in which they are tried."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Final

from capacity.bench.formats import (
    aiperf,
    evalscope,
    genai_bench,
    guidellm,
    inference_perf,
    inferencemax,
    llama_batched_bench,
    llama_bench,
    llama_benchy,
    llm_d,
    llm_d_planner,
    llmperf,
    own,
    refused,
    sglang,
    tgi_bench,
    vllm,
)
from capacity.bench.formats.contract import Opened, Unreadable
from capacity.bench.formats.opening import opened
from capacity.domain.measurement.types import Contents

FORMATS: Final[tuple[ModuleType, ...]] = (
    vllm,
    guidellm,
    sglang,
    aiperf,
    inference_perf,
    llmperf,
    own,
    llm_d,
    inferencemax,
    genai_bench,
    tgi_bench,
    evalscope,
    llm_d_planner,
    llama_bench,
    llama_batched_bench,
    llama_benchy,
)
"""Each offers what `contract.Format` says."""


def read_file(path: Path, where: str) -> Contents:
    """What the file holds; `where` is what the person calls it. Unreadable: one sentence."""
    return read(opened(path, where))


def read(found: Opened) -> Contents:
    for form in FORMATS:
        if form.recognises(found):
            return form.read(found)
    if said := refused.reason(found):
        raise Unreadable(said)
    raise Unreadable(f"it is no result file that is read. Read are those of {', '.join(form.NAME for form in FORMATS)}.")
