"""The document of `POST /api/v1/load`: checked whole, every fault named with its path, unknown keys refused.

    {"source": "gateway-1",
     "replicas": {"chat-1": 3},
     "models": {"chat": {"held": 2, "last_arrival_seconds_ago": 0.4}}}

A gateway states an arrival as an age, so that only the server's clock counts; `last_arrival_at` (a time with its offset) is taken
too, and one in the future counts as just now.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from capacity.sources.gateway import ModelPush, Push
from capacity.sources.store import read_time

MAX_ENTRIES = 10_000
MAX_NAME_CHARACTERS = 200
MAX_COUNT = 10**12
MAX_FAULTS = 100
MAX_AGE_SECONDS = 10 * 365 * 86_400

_UNFIT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")  # control characters, and halves of characters that no store takes
_KEYS = frozenset({"source", "replicas", "models"})
_MODEL_KEYS = frozenset({"held", "last_arrival_at", "last_arrival_seconds_ago"})
_NAME = f"1 to {MAX_NAME_CHARACTERS} characters without control characters"
_WHOLE = f"must be a whole number from 0 to {MAX_COUNT}."


@dataclass(frozen=True, slots=True)
class Fault:
    path: str
    message: str


class InvalidPush(Exception):
    """All that is wrong with a push."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("; ".join(f"{fault.path}: {fault.message}" for fault in faults[:5]))
        self.faults = faults


def parse_push(document: object, now: datetime) -> Push:
    """Check a push received at `now`; InvalidPush carries the faults, the first hundred of them."""
    if not isinstance(document, dict):
        raise InvalidPush((Fault("$", "must be an object."),))
    faults: list[Fault] = []
    push = _push(document, now, faults)
    if faults:
        raise InvalidPush(tuple(faults[:MAX_FAULTS]))
    return push


def _push(rows: Mapping[str, object], now: datetime, faults: list[Fault]) -> Push:
    _refuse_unknown(rows, _KEYS, "$", faults)
    source = rows.get("source")
    if not _is_name(source):
        faults.append(Fault("$.source", f"is required: {_NAME}."))
    replicas = _named(rows.get("replicas", {}), "$.replicas", faults)
    models = _named(rows.get("models", {}), "$.models", faults)
    return Push(
        source=str(source),
        at=now,
        replicas={name: _whole(value, f"$.replicas[{name!r}]", faults) for name, value in replicas.items()},
        models={name: _model(value, f"$.models[{name!r}]", now, faults) for name, value in models.items()},
    )


def _model(value: object, path: str, now: datetime, faults: list[Fault]) -> ModelPush:
    row = _object(value, path, faults)
    _refuse_unknown(row, _MODEL_KEYS, path, faults)
    held = None if row.get("held") is None else _whole(row["held"], f"{path}.held", faults)
    return ModelPush(held=held, last_arrival_at=_arrival(row, path, now, faults))


def _arrival(row: Mapping[str, object], path: str, now: datetime, faults: list[Fault]) -> datetime | None:
    age, at = row.get("last_arrival_seconds_ago"), row.get("last_arrival_at")
    if age is not None and at is not None:
        faults.append(Fault(path, "has last_arrival_at and last_arrival_seconds_ago: one of them says it."))
        return None
    if age is not None:
        return _arrival_ago(age, f"{path}.last_arrival_seconds_ago", now, faults)
    found = read_time(at)
    if at is not None and found is None:
        faults.append(Fault(f"{path}.last_arrival_at", "must be a time such as 2026-11-30T12:00:00Z."))
    return None if found is None else min(found, now)


def _arrival_ago(age: object, path: str, now: datetime, faults: list[Fault]) -> datetime | None:
    if isinstance(age, bool) or not isinstance(age, int | float) or not 0 <= age <= MAX_AGE_SECONDS:
        faults.append(Fault(path, f"must be a number from 0 to {MAX_AGE_SECONDS}."))
        return None
    return now - timedelta(seconds=float(age))


def _object(value: object, path: str, faults: list[Fault]) -> Mapping[str, object]:
    if isinstance(value, dict):
        return value
    faults.append(Fault(path, "must be an object."))
    return {}


def _named(value: object, path: str, faults: list[Fault]) -> Mapping[str, object]:
    rows = _object(value, path, faults)
    if len(rows) > MAX_ENTRIES:
        faults.append(Fault(path, f"has {len(rows)} entries, at most {MAX_ENTRIES} are taken."))
        return {}
    faults += [Fault(path, f"has a name that is not {_NAME}: {name[:40]!r}.") for name in rows if not _is_name(name)]
    return rows


def _refuse_unknown(row: Mapping[str, object], known: frozenset[str], path: str, faults: list[Fault]) -> None:
    unknown = [key for key in row if key not in known][:20]
    faults += [Fault(path, f"has an unknown key {key[:40]!r}; known are {', '.join(sorted(known))}.") for key in unknown]


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= MAX_NAME_CHARACTERS and not _UNFIT.search(value)


def _whole(value: object, path: str, faults: list[Fault]) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT and value == int(value):
        return int(value)
    faults.append(Fault(path, _WHOLE))
    return 0
