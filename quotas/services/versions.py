"""Which version of a row an edit was begun under."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from django.db import models

from .rows import stored_row, written_fields

Belonging = tuple[type[models.Model], str]
"""A kind of rows that is edited together with another, and its field that points there."""


def version_of(row: models.Model, belongings: Sequence[Belonging] = ()) -> str:
    """Moves with each edit that a person makes of the row or what belongs to it: a save begun under another is stale."""
    if row.pk is None:
        return ""
    kinds = [(type(row), row._meta.pk.attname), *((kind, f"{field}_id") for kind, field in belongings)]
    return ".".join(_last_entry(kind, field, row) for kind, field in kinds)


def _last_entry(kind: type[models.Model], field: str, row: models.Model) -> str:
    if not hasattr(kind, "history"):
        return _fingerprint(row)
    return str(kind.history.filter(**{field: row.pk}).aggregate(last=models.Max("history_id"))["last"] or 0)


def _fingerprint(row: models.Model) -> str:
    """Of a row without history. Not of a password: it has a form of its own."""
    stored = stored_row(row)
    values = [getattr(stored, f.attname, None) for f in written_fields(type(row)) if f.name != "password"]
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]
