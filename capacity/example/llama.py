"""The second example: real llama.cpp servers with a small real model, one thread a replica, two of them at most.

What a replica serves, and with it the load that is made for it, is read on the machine that runs it: half a minute, once.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from decimal import Decimal

from django.core.exceptions import ValidationError

from capacity.example.shape import Contents, Example, Served, Way
from capacity.llama import packages, reading
from capacity.llama.reading import Reading, Stage, Target

MODEL = "smollm2"
RESOURCE = "thread"
REPLICAS = 2  # one thread each: they fit two cores, with what the control plane leaves of them
TARGET = Target(ttft_ms=1500, tpot_ms=400)
PROMPT_WORDS = 20
OUTPUT_TOKENS = 48
LOAD_FILE = "load.json"
# shares of what one replica serves at its limit: past it at the height of the cycle, far below 70 % of it at its low
HIGH, LOW = 1.3, 0.1


def contents() -> Contents:
    """Reads one replica on this machine. ValidationError where the packages are missing or the machine is too slow."""
    if not packages.are_installed():
        raise ValidationError(packages.HOW)
    try:
        found = reading.read(TARGET, prompt_words=PROMPT_WORDS, output_tokens=OUTPUT_TOKENS)
    except reading.Unread as unread:
        raise ValidationError(str(unread)) from unread
    return contents_of(found)


def contents_of(found: Reading) -> Contents:
    if found.best is None:
        raise ValidationError(
            f"This machine is too slow or too busy for the example: one request alone missed {TARGET.ttft_ms} ms to the first "
            f"token or {TARGET.tpot_ms} ms for each further one. Try again when it has a free core."
        )
    model = Served(name=MODEL, scope="llama-org", max_replicas=REPLICAS, ways=(_way(found, found.best),))
    return Contents(models=(model,), files={LOAD_FILE: load_plan(found.best)})


def _way(found: Reading, best: Stage) -> Way:
    return Way(
        name="one-thread",
        units=1,
        template="llama",
        parameters={"threads": "1", "slots": "4", "context": "1024"},
        capacity=best.concurrency,
        tokens_per_second=Decimal(best.tokens_per_second),
        evidence={
            "engine": "llama.cpp",
            "tool": "a quick reading of one replica on this machine at the example's first start",
            "kind": found.kind,
            "stages": [_stage(stage) for stage in found.stages],
        },
        note="Read on this machine when it had little else to do: a few requests a stage, no sweep.",
    )


def _stage(stage: Stage) -> dict[str, float]:
    return {name: round(value, 3) for name, value in asdict(stage).items()} | {"errors": 0}


def load_plan(best: Stage) -> str:
    """A cycle of four minutes, as JSON for the gateway: past what one replica serves, and back."""
    load = {
        "series": "conversation",
        "low_per_second": round(LOW * best.requests_per_second, 3),
        "high_per_second": round(HIGH * best.requests_per_second, 3),
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
    slo={
        "name": "example: llama on one thread",
        "ttft_percentile": 95,
        "ttft_ms": TARGET.ttft_ms,
        "tpot_percentile": 95,
        "tpot_ms": TARGET.tpot_ms,
    },
    contents=contents,
)
