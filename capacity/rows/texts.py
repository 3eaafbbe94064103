"""Lists, maps and times as the database writes them.

A field's converters cost more for each of ten thousand rows than all else that is done to it: a pass reads these columns as
text, and each text that it has not met yet is parsed once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast


def columns(found: QuerySet[Any], names: Sequence[str], as_text: Iterable[str]) -> QuerySet[Any]:
    """The rows as tuples of `names`, in which those that are also in `as_text` are text."""
    texts = {name: f"{name.replace('__', '_')}_text" for name in as_text}
    annotated = found.annotate(**{text: Cast(name, TextField()) for name, text in texts.items()})
    return annotated.values_list(*(texts.get(name, name) for name in names))


class Json(dict[str | None, Any]):
    """Text → what it says; None → None. Equal texts give one object, which nobody may change."""

    def __missing__(self, text: str | None) -> Any:
        value = self[text] = None if text is None else json.loads(text)
        return value


def instant(text: str) -> datetime:
    """An instant as databases write it in UTC, with or without its zone."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
