"""When a sweep was made, by what its files say (pure). A local time without a zone is a word to show, and no moment."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

DATES: Final = ("measured at", "began", "date", "ended")
"""Hints that hold a time, the best first."""
COMPACT: Final = "%Y%m%d-%H%M%S"


def moment_of(hints: Mapping[str, str]) -> datetime | None:
    """In UTC; None where no hint names a time with its zone."""
    found = (_moment(hints[name]) for name in DATES if name in hints)
    return next((at for at in found if at is not None), None)


def _moment(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.tzinfo else None
    except (ValueError, OverflowError):
        return None


def readable(name: str, text: str) -> str:
    """A hint for a person: vLLM's `20261130-101010` is a local time of nobody knows where; anything else as it stands."""
    if name not in DATES:
        return text
    try:
        return f"{datetime.strptime(text, COMPACT).replace(tzinfo=UTC):%Y-%m-%d %H:%M:%S}, without a time zone"
    except ValueError:
        return text
