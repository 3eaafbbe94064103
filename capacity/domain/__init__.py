"""What to do about what runs: pure functions of one snapshot. No clock, no I/O, standard library only."""

from typing import Any

from capacity.domain.plan import plan
from capacity.domain.plan_document import plan_document
from capacity.domain.snapshot import Fault, InvalidSnapshot, loads, parse_snapshot, snapshot_document

__all__ = ["Fault", "InvalidSnapshot", "loads", "parse_snapshot", "plan", "plan_document", "plan_json", "snapshot_document"]


def plan_json(document: object) -> dict[str, Any]:
    """Plan document (`llmgw.plan/1`) of a snapshot document (`llmgw.snapshot/1`); raises `InvalidSnapshot` with all faults."""
    return plan_document(plan(parse_snapshot(document)))
