"""The second example: real llama.cpp servers with a small real model, one thread a replica, two of them at most.

What a replica serves, and with it the load that is made for it, is read on the machine that runs it: a minute, once.
"""

from __future__ import annotations

import json
from decimal import Decimal

from django.core.exceptions import ValidationError

from capacity.domain.measurement.document import evidence_of
from capacity.domain.measurement.types import Bound, Judgement, Measured, Slo
from capacity.example.shape import Contents, Example, Served, Way
from capacity.llama import packages, reading

MODEL = "smollm2"
SLO_NAME = "example: llama on one thread"
RESOURCE = "thread"
REPLICAS = 2  # one thread each: they fit two cores, with what the control plane leaves of them
PERCENTILE = 95
TTFT_MS, TPOT_MS = 1500, 400
TARGET = Slo(
    bounds=(
        Bound(latency="ttft", percentile=PERCENTILE, ms=TTFT_MS),
        Bound(latency="tpot", percentile=PERCENTILE, ms=TPOT_MS),
    )
)
PROMPT_WORDS = 20
INPUT_TOKENS = 50  # those words in the model's template
OUTPUT_TOKENS = 48
LOAD_FILE = "load.json"
# shares of what one replica serves at its limit: past it at the height of the cycle, far below 70 % of it at its low
HIGH, LOW = 1.3, 0.1


def contents() -> Contents:
    """Reads one replica on this machine. ValidationError where the packages are missing or the machine is too slow."""
    if not packages.are_installed():
        raise ValidationError(packages.HOW)
    try:
        found = reading.read(TARGET, input_tokens=INPUT_TOKENS, output_tokens=OUTPUT_TOKENS)
    except reading.Unread as unread:
        raise ValidationError(str(unread)) from unread
    return contents_of(found)


def contents_of(found: Judgement) -> Contents:
    measured = found.measured
    if measured is None or not measured.max_concurrency:
        raise ValidationError(
            f"This machine is too slow or too busy for the example: one request alone missed {TTFT_MS} ms to the first "
            f"token or {TPOT_MS} ms for each further one. Try again when it has a free core."
        )
    model = Served(name=MODEL, scope="llama-org", slo=SLO_NAME, max_replicas=REPLICAS, ways=(_way(found, measured),))
    return Contents(models=(model,), files={LOAD_FILE: load_plan(measured)})


def _way(found: Judgement, measured: Measured) -> Way:
    return Way(
        name="one-thread",
        units=1,
        template="llama",
        parameters={"threads": "1", "slots": "4", "context": "1024"},
        capacity=measured.max_concurrency,
        tokens_per_second=Decimal(measured.tokens_per_second),
        evidence={
            **evidence_of(found, slo=TARGET),
            "engine": "llama.cpp",
            "tool": "llmgw: a short sweep of one replica on this machine at the example's first start",
        },
        note="Read on this machine when it had little else to do: a sweep of a few seconds a level.",
    )


def load_plan(measured: Measured) -> str:
    """A cycle of four minutes, as JSON for the gateway: past what one replica serves, and back."""
    per_second = measured.tokens_per_second / OUTPUT_TOKENS
    load = {
        "series": "conversation",
        "low_per_second": round(LOW * per_second, 3),
        "high_per_second": round(HIGH * per_second, 3),
        "output_tokens": OUTPUT_TOKENS,
        "prompt_words": PROMPT_WORDS,
        "phase": 0.336,
        "contrast": 1.7,
    }
    return json.dumps({"cycle_seconds": 240, "models": {MODEL: load}})


LLAMA = Example(
    pool="llama",
    node="llama-1",
    resource=RESOURCE,
    units=REPLICAS,
    account="llama-gateway",
    folder="example-llama",
    scopes={"llama-org": ((), REPLICAS)},
    slos={
        SLO_NAME: {
            "ttft_percentile": PERCENTILE,
            "ttft_ms": TTFT_MS,
            "tpot_percentile": PERCENTILE,
            "tpot_ms": TPOT_MS,
        }
    },
    contents=contents,
)
