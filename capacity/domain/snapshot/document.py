"""A `Snapshot` as its JSON document, with every key: the inverse of `parse_snapshot`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from fractions import Fraction
from typing import Any

from capacity.domain.snapshot.parse import FORMAT
from capacity.domain.snapshot.rows import KEYS, SETTINGS
from capacity.domain.types import Model, Snapshot


def snapshot_document(snapshot: Snapshot) -> dict[str, Any]:
    """The document that describes `snapshot`; rows keep their order.

    A model with `bounds_conflict` is no valid row: it is written as `paused` without bounds, which the plan treats alike.
    `tokens_per_second` is exact up to the 15 digits that a JSON number keeps everywhere.
    """
    settings = {key: _value(getattr(snapshot.settings, key)) for key in SETTINGS}
    settings["scale_down_fraction"] = str(snapshot.settings.scale_down_fraction)
    document: dict[str, Any] = {"format": FORMAT, "at": instant(snapshot.at), "settings": settings}
    for kind in KEYS:
        rows: Sequence[object] | None = getattr(snapshot, kind)
        document[kind] = None if rows is None else [_row(kind, row) for row in rows]
    return document


def instant(moment: datetime) -> str:
    """The instant in UTC, ending in Z, with fractions of a second only where there are any."""
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def _row(kind: str, row: object) -> dict[str, Any]:
    values = {key: _value(getattr(row, key)) for key in KEYS[kind]}
    if isinstance(row, Model):
        if row.scale_down_fraction is not None:
            values["scale_down_fraction"] = str(row.scale_down_fraction)
        if row.bounds_conflict:
            values |= {"mode": "paused", "min_replicas": 0, "max_replicas": None}
    return values


def _value(value: object) -> Any:
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value
