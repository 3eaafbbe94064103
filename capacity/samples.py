"""A sample's packed array: one fixed-width record a replica, so that a day of a model is read without a loop over points."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

UNKNOWN = -1
UNDER_TEST = "under_test"
"""Of a replica that a sweep has to itself: nothing of its load is the model's, and none is written."""
STATES = ("starting", "ready", "unready", "draining", UNDER_TEST)
RECORD = np.dtype(
    [
        ("replica", "<i8"),  # primary key of the Replica
        ("in_flight", "<i8"),  # requests running and waiting; -1 unknown
        ("capacity", "<i8"),  # its profile's measured max_concurrency; -1 unmeasured
        ("tokens", "<f4"),  # output tokens a second since the last pass; NaN unknown
        ("state", "i1"),  # index into STATES
    ]
)


def pack(rows: Iterable[tuple[int, int | None, int | None, float | None, str]]) -> bytes:
    """(replica id, in flight, capacity, tokens a second, state) a replica → bytes for `Sample.replicas`."""
    records = [
        (
            replica,
            UNKNOWN if in_flight is None else in_flight,
            UNKNOWN if capacity is None else capacity,
            float("nan") if tokens is None else tokens,
            STATES.index(state),
        )
        for replica, in_flight, capacity, tokens, state in rows
    ]
    return np.array(records, dtype=RECORD).tobytes()


def has_unread(blob: bytes) -> bool:
    """Whether a ready replica had no reading."""
    records = unpack(blob)
    return bool(((records["state"] == STATES.index("ready")) & (records["in_flight"] == UNKNOWN)).any())


def count_tested(blob: bytes) -> int:
    """How many replicas a sweep had to itself."""
    return int((unpack(blob)["state"] == STATES.index(UNDER_TEST)).sum())


def unpack(blob: bytes) -> NDArray[np.void]:
    """The records of one sample, or of several joined blobs, as a structured array."""
    return np.frombuffer(blob, dtype=RECORD)
