"""A sweep's levels as a small drawing that needs no script: it is drawn anew with every level while the sweep runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

WIDTH: Final = 640
HEIGHT: Final = 180
LEFT: Final = 8
TOP: Final = 22
FOOT: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """`x`, `y` in units of the drawing; `text` says the level and its value."""

    x: float
    y: float
    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    name: str
    slot: str
    dots: tuple[Dot, ...]
    top: str
    """The highest value, with its unit: each line has a scale of its own."""

    @property
    def points(self) -> str:
        return " ".join(f"{dot.x:.1f},{dot.y:.1f}" for dot in self.dots)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    lines: tuple[Line, ...]
    marks: tuple[Dot, ...]
    """Levels on the axis."""
    width: int = WIDTH
    height: int = HEIGHT


LINES: Final = (("tokens/s", None, "tokens/s"), ("TTFT p95", "ttft", "ms"), ("TPOT p95", "tpot", "ms"), ("E2E p95", "e2e", "ms"))


def chart_of(stages: Sequence[dict[str, Any]]) -> Chart | None:
    """Tokens/s and the p95 of each latency over the level, levels evenly apart; None before there are two."""
    known = sorted((row for row in stages if row.get("level") is not None), key=lambda row: row["level"])
    if len(known) < 2:
        return None
    step = (WIDTH - 2 * LEFT - 40) / (len(known) - 1)
    places = [LEFT + 20 + step * number for number in range(len(known))]
    marks = tuple(Dot(x=x, y=HEIGHT - 6, level=f"{row['level']:g}", text="") for x, row in zip(places, known, strict=True))
    found = (_line(name, latency, unit, known, places, slot) for slot, (name, latency, unit) in enumerate(LINES))
    return Chart(lines=tuple(line for line in found if line is not None), marks=marks)


def _line(
    name: str, latency: str | None, unit: str, rows: Sequence[dict[str, Any]], places: Sequence[float], slot: int
) -> Line | None:
    values = [row.get("tokens_per_second") if latency is None else (row.get(latency) or {}).get("p95") for row in rows]
    top = max((value for value in values if value is not None), default=0)
    if top <= 0:
        return None
    dots = tuple(
        Dot(
            x=x,
            y=TOP + (HEIGHT - TOP - FOOT) * (1 - value / top),
            level=f"{row['level']:g}",
            text=f"{name} at {row['level']:g}: {value:.0f} {unit}",
        )
        for x, value, row in zip(places, values, rows, strict=True)
        if value is not None
    )
    return Line(name=name, slot=f"s{slot}", dots=dots, top=f"{top:.0f} {unit}")
