"""A measurement beside what live engines count."""

from capacity.domain.self_check.gather import band, folded, interval, key
from capacity.domain.self_check.judge import finding, shape_of
from capacity.domain.self_check.stored import document, read
from capacity.domain.self_check.types import COUNTERS, Counter, Finding, Interval, Reading, Shape, State

__all__ = [
    "COUNTERS",
    "Counter",
    "Finding",
    "Interval",
    "Reading",
    "Shape",
    "State",
    "band",
    "document",
    "finding",
    "folded",
    "interval",
    "key",
    "read",
    "shape_of",
]
