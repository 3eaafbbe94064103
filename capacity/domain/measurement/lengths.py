"""Which settings are of one shape of request: set lengths part two sweeps, drawn ones only where they lie far apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .types import Setting, Stage

Row = tuple[Setting, Stage]
Shape = tuple[int | None, int | None, bool]

SET: Final = 1.1
"""Two tokenizers, or a prompt template, count the same set length so far apart at most."""
DRAWN_INPUT: Final = 1.5
DRAWN_OUTPUT: Final = 4.0
"""A mean over few requests that end when they like wanders so far."""


def apart(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of one setting in groups of one shape: those that are near each other, or joined by others that are."""
    groups = _joined(sorted({_shape(setting) for setting, _ in rows}, key=_order))
    return [[row for row in rows if _shape(row[0]) in group] for group in groups]


def _joined(shapes: Sequence[Shape]) -> list[set[Shape]]:
    groups: list[set[Shape]] = []
    for shape in shapes:
        near = [group for group in groups if any(_is_near(shape, other) for other in group)]
        far = [group for group in groups if group not in near]
        groups = [*far, {shape}.union(*near)]
    return groups


def _is_near(one: Shape, other: Shape) -> bool:
    drawn = one[2] or other[2]
    return _within(one[0], other[0], DRAWN_INPUT if drawn else SET) and _within(one[1], other[1], DRAWN_OUTPUT if drawn else SET)


def _within(one: int | None, other: int | None, ratio: float) -> bool:
    if one is None or other is None:
        return one is other
    return max(one, other) <= max(ratio * min(one, other), min(one, other) + 1)


def _shape(setting: Setting) -> Shape:
    return setting.input_tokens, setting.output_tokens, setting.drawn


def _order(shape: Shape) -> tuple[int, int, bool]:
    return shape[0] or 0, shape[1] or 0, shape[2]
