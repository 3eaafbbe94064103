"""The snapshot document, `llmgw.snapshot/1`: text to values, values to a `Snapshot`, and back."""

from capacity.domain.snapshot.document import instant, snapshot_document
from capacity.domain.snapshot.faults import Fault, InvalidSnapshot
from capacity.domain.snapshot.parse import FORMAT, bounds_fault, parse_snapshot
from capacity.domain.snapshot.text import loads

__all__ = ["FORMAT", "Fault", "InvalidSnapshot", "bounds_fault", "instant", "loads", "parse_snapshot", "snapshot_document"]
