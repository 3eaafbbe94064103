"""What a run found: a few lines for people, and a document for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capacity.domain.phrases import number

from .run import Result


def document(result: Result) -> dict[str, Any]:
    """`{"seed", "schedules", "faults", "untaken", "looks", "longest_recovery_passes", "violations", "again"}`."""
    return {
        "seed": result.seed,
        "schedules": len(result.recovery_passes),
        "faults": dict(sorted(result.faults.items())),
        "untaken": dict(sorted(result.untaken.items())),
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
    lines = [
        f"seed {result.seed}: {found['schedules']} schedules, {sum(result.faults.values())} faults ({_counts(found['faults'])})",
        f"edits that the API did not take: {_counts(found['untaken']) or 0}",
        f"looked at {result.looks} times; longest way back to rest: {found['longest_recovery_passes']} passes",
        f"violations: {len(result.violations)}",
    ]
    lines += [f"  schedule {number}: {what}" for number, what in result.violations]
    lines += [f"again: {command}" for command in found["again"]]
    return "\n".join(lines)


def verdict(result: Result) -> str:
    """The last line: one sentence that says how it went."""
    many = number(len(result.recovery_passes), "schedule")
    if not result.violations:
        return f"All rules held in {many}."
    return f"{number(len(result.violations), 'violation')} in {many}: see above for which rules were broken."


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in counts.items())


def write(result: Result, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document(result), indent=1) + "\n")
