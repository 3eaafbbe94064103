"""What each format's module offers, and what it is given.

A module of this package has `NAME` (the tool, for pages) and the two functions of `Format`. It is tried on the file's `Opened`
form in the order of `registry.FORMATS`; the first that recognises it reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from capacity.domain.measurement.types import Contents

Shape = Literal["object", "list", "lines", "csv", "yaml", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A file that could be parsed, by its content and never its name.

    `shape`: one JSON object; a JSON list; JSON Lines (also several objects one after another); CSV; YAML; any
    other text. `documents` are the object (one), the list's items, the lines' objects, the CSV's rows as lists of cells, the
    YAML's documents, or the first lines of a text. NaN and
    Infinity have become None. Long per-request lists are cut out while reading (`streaming`), so that memory stays bounded.
    """

    where: str
    shape: Shape
    documents: Sequence[Any]


class Unreadable(Exception):
    """Nothing in the file can be used: one sentence that says what was found and what to do instead."""


class Format(Protocol):
    NAME: str

    def recognises(self, opened: Opened) -> bool:
        """Whether it is this format's; looks at few keys, never raises."""
        ...

    def read(self, opened: Opened) -> Contents:
        """Its stages. Unreadable where it is this tool's but holds nothing usable."""
        ...
