"""The table for people and the list for machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from .timing import Figure


def table(figures: Sequence[Figure]) -> str:
    """A line a figure: name, value, unit, target, value as a share of the target, what stands beside it."""
    rows = [("name", "value", "unit", "target", "ratio", ""), *(_cells(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    name, value, unit, target, ratio, note = row
    cells = (
        name.ljust(widths[0]),
        value.rjust(widths[1]),
        unit.ljust(widths[2]),
        target.rjust(widths[3]),
        ratio.rjust(widths[4]),
    )
    return "  ".join((*cells, note)).rstrip()


def _cells(figure: Figure) -> tuple[str, str, str, str, str, str]:
    value = f"{figure.value:,.0f}" if figure.unit == "queries" else f"{figure.value:,.1f}"
    if figure.target is None:
        return figure.name, value, figure.unit, "", "", figure.note
    return figure.name, value, figure.unit, f"≤ {figure.target:,.0f}", f"{figure.value / figure.target:.2f}", figure.note


def write(figures: Sequence[Figure], path: Path) -> None:
    """`[{"name", "value", "unit"}]` of the figures that have a target; names stay the same from release to release."""
    rows = [{"name": f.name, "value": round(f.value, 3), "unit": f.unit} for f in figures if f.target is not None]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1) + "\n")
