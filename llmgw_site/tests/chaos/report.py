"""What a run found: a few lines for people, and a document for machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .run import Result


def document(result: Result) -> dict[str, Any]:
    """`{"seed", "schedules", "faults", "looks", "longest_recovery_passes", "violations", "again"}`."""
    return {
        "seed": result.seed,
        "schedules": len(result.recovery_passes),
        "faults": dict(sorted(result.faults.items())),
        "looks": result.looks,
        "longest_recovery_passes": max(result.recovery_passes.values(), default=None),
        "violations": [{"schedule": number, "what": what} for number, what in result.violations],
        "again": [again(result.seed, number) for number in result.failed],
    }


def again(seed: int, number: int) -> str:
    """How to run that schedule alone; before the first one there is only the start."""
    return f"make chaos SEED={seed} ONLY={max(number, 0)}"


def table(result: Result) -> str:
    found = document(result)
    faults = ", ".join(f"{kind} {count}" for kind, count in found["faults"].items())
    lines = [
        f"seed {result.seed}: {found['schedules']} schedules, {sum(result.faults.values())} faults ({faults})",
        f"looked at {result.looks} times; longest way back to rest: {found['longest_recovery_passes']} passes",
        f"violations: {len(result.violations)}",
    ]
    lines += [f"  schedule {number}: {what}" for number, what in result.violations]
    lines += [f"again: {command}" for command in found["again"]]
    return "\n".join(lines)


def write(result: Result, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document(result), indent=1) + "\n")
