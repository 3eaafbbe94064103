"""Replicas with what the newest pass read of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..models import BenchRun, Replica, Sample
from ..samples import STATES, UNDER_TEST, UNKNOWN, unpack
from .board import is_old, load_percent
from .places import unheard


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRow:
    """A replica with its newest reading. `in_flight` and `capacity` None: unknown, unmeasured. `unheard`: `silent` or `lost`
    where its host is that; `tested_by`: the sweep that has it to itself."""

    replica: Replica
    in_flight: int | None
    capacity: int | None
    load_percent: float | None
    load_word: str
    unheard: str = ""
    tested_by: int | None = None


def replica_rows(replicas: Sequence[Replica], sample: Sample | None, now: datetime) -> list[ReplicaRow]:
    readings = {int(record["replica"]): record for record in unpack(bytes(sample.replicas))} if sample else {}
    old = sample is None or is_old(sample.at, now)
    silences = unheard(replicas, now)
    tests = tests_of(replicas, now)
    return [
        _replica_row(replica, None if old else readings.get(replica.pk), silences.get(replica.pk, ""), tests.get(replica.pk))
        for replica in replicas
    ]


def tests_of(replicas: Sequence[Replica], now: datetime) -> dict[int, int]:
    """Replica's key → the sweep that has it to itself, for those that one has."""
    held = BenchRun.objects.holding(now).filter(replica__in=[row.pk for row in replicas])
    return dict(held.values_list("replica_id", "pk"))


def _replica_row(replica: Replica, reading: Any, silence: str, tested_by: int | None) -> ReplicaRow:
    in_flight = _known(reading, "in_flight")
    capacity = _known(reading, "capacity")
    share = None if in_flight is None or capacity is None else load_percent(in_flight, capacity)
    return ReplicaRow(
        replica=replica,
        in_flight=in_flight,
        capacity=capacity,
        load_percent=share,
        load_word=_load_word(reading, in_flight, capacity),
        unheard=silence,
        tested_by=tested_by,
    )


def _known(reading: Any, field: str) -> int | None:
    return None if reading is None or reading[field] == UNKNOWN else int(reading[field])


def _load_word(reading: Any, in_flight: int | None, capacity: int | None) -> str:
    state = None if reading is None else STATES[reading["state"]]
    if state in ("starting", UNDER_TEST):
        return state.replace("_", " ")
    if in_flight is None:
        return "no reading"
    return "unmeasured" if capacity is None else "no capacity"
