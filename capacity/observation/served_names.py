"""Under which names a model is asked for. Own names win over aliases; of two that share one, the first has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Named = tuple[str, Sequence[str]]
"""A model's name, and its other names."""


def plain(value: Any) -> list[str]:
    """Stored aliases as they are; none where raw SQL left something else."""
    return list(value) if isinstance(value, list) and all(isinstance(name, str) for name in value) else []


def owners(models: Iterable[Named]) -> dict[str, str]:
    """Each name that a request may use → the model's own name."""
    rows = sorted(models)
    names = {name: name for name, _ in rows}
    for name, aliases in rows:
        for alias in aliases:
            names.setdefault(alias, name)
    return names


def contested(models: Iterable[Named]) -> Iterator[tuple[str, str, str]]:
    """(model, alias, the model that has it): aliases under which a model is stored and not asked for."""
    rows = sorted(models)
    has = owners(rows)
    for name, aliases in rows:
        yield from ((name, alias, has[alias]) for alias in aliases if has[alias] != name)
