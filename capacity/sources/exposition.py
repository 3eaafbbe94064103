"""A lenient, one-pass reader of Prometheus and OpenMetrics text.

It keeps the metrics that were asked for: engines' answers mix both formats, write three-digit exponents, and sometimes are no
metrics at all. A line of a wanted metric that is no sample makes that metric's value unknown, never smaller. It never raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from functools import lru_cache

MAX_LINE_CHARACTERS = 8_192
MAX_NAME_CHARACTERS = 200
MAX_KEPT_CHARACTERS = 500  # so that hostile labels fill no memory

Labels = tuple[tuple[str, str], ...]  # sorted
Series = dict[str, dict[Labels, float]]

_LINE = re.compile(r'([A-Za-z_:][\w:]*)[ \t]*(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?[ \t]+(\S+)', re.ASCII)
_LABEL = re.compile(r'([A-Za-z_]\w*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"', re.ASCII)
_NAME = re.compile(r"[A-Za-z_:][\w:]*", re.ASCII)
_ESCAPE = re.compile(r"\\(.)")
_BROKEN: tuple[Labels, float] = ((), math.nan)


def parse(text: str, wanted: Collection[str]) -> Series:
    """Read the `wanted` metrics (names with underscores): name → labels → value, which may be infinite, or NaN where it is none.

    Of a series that comes twice the last value stands."""
    series: Series = {}
    spelled: dict[str, str | None] = {}  # most lines begin as the line before, and are not wanted
    for line in text.split("\n"):
        raw = line[: _name_end(line)]
        name = spelled[raw] if raw in spelled else spelled.setdefault(raw, _wanted(raw, wanted))
        if name is not None:
            labels, value = _sample(line)
            series.setdefault(name, {})[labels] = value
    return series


def _name_end(line: str) -> int:
    brace, blank = line.find("{", 0, MAX_NAME_CHARACTERS), line.find(" ", 0, MAX_NAME_CHARACTERS)
    if brace < 0:
        return blank if blank >= 0 else MAX_NAME_CHARACTERS
    return brace if blank < 0 else min(brace, blank)


def _wanted(raw: str, wanted: Collection[str]) -> str | None:
    """What a line begins with, as a wanted name; a tab may stand behind it."""
    found = _NAME.match(raw)
    name = found.group().replace(":", "_") if found else ""
    return name if name in wanted else None


def _sample(line: str) -> tuple[Labels, float]:
    found = _LINE.match(line) if len(line) <= MAX_LINE_CHARACTERS else None
    if found is None:
        return _BROKEN
    text = found.group(2) or ""
    return _kept_labels(text) if len(text) <= MAX_KEPT_CHARACTERS else _labels(text), _number(found.group(3))


def _number(text: str) -> float:
    if "_" in text or not text.isascii():  # float() reads 1_000 and other scripts' digits, Prometheus does not
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


def _labels(text: str) -> Labels:
    return tuple(sorted((name, _unescaped(value)) for name, value in _LABEL.findall(text)))


_kept_labels = lru_cache(maxsize=4096)(_labels)  # engines of one kind carry the same labels in every reading


def _unescaped(value: str) -> str:
    return _ESCAPE.sub(lambda found: "\n" if found.group(1) == "n" else found.group(1), value) if "\\" in value else value
