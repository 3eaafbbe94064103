"""A lenient, bounded, one-pass reader of Prometheus and OpenMetrics text.

It keeps the metrics that were asked for and skips every line it does not understand: engines' answers mix both formats, write
three-digit exponents, and sometimes are no metrics at all. It never raises.
"""

from __future__ import annotations

import re
from collections.abc import Collection

MAX_LINE_CHARACTERS = 8_192
MAX_SERIES = 20_000

Labels = tuple[tuple[str, str], ...]  # sorted
Series = dict[str, dict[Labels, float]]

_LINE = re.compile(r'([A-Za-z_:][\w:]*)[ \t]*(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?[ \t]+(\S+)', re.ASCII)
_LABEL = re.compile(r'([A-Za-z_]\w*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"', re.ASCII)
_NAME = re.compile(r"[A-Za-z_:][\w:]*", re.ASCII)
_ESCAPE = re.compile(r"\\(.)")


def parse(text: str, wanted: Collection[str]) -> Series:
    """Read the `wanted` metrics (names with underscores): name → labels → value, which may be NaN or infinite.

    Of a series that comes twice the last value stands."""
    series: Series = {}
    kept = 0
    for line in text.splitlines():
        found = _NAME.match(line) if len(line) <= MAX_LINE_CHARACTERS else None
        name = found.group().replace(":", "_") if found else ""
        if name not in wanted or kept >= MAX_SERIES:
            continue
        sample = _sample(line)
        if sample is not None:
            kept += 1
            series.setdefault(name, {})[sample[0]] = sample[1]
    return series


def _sample(line: str) -> tuple[Labels, float] | None:
    found = _LINE.match(line)
    if found is None:
        return None
    value = _number(found.group(3))
    return None if value is None else (_labels(found.group(2) or ""), value)


def _number(text: str) -> float | None:
    if "_" in text:  # float() reads 1_000, Prometheus does not
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _labels(text: str) -> Labels:
    return tuple(sorted((name, _unescaped(value)) for name, value in _LABEL.findall(text)))


def _unescaped(value: str) -> str:
    return _ESCAPE.sub(lambda found: "\n" if found.group(1) == "n" else found.group(1), value) if "\\" in value else value
