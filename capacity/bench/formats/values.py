"""Single values out of files that strangers wrote: what is no usable number or text is None, never an exception."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from capacity.bench.formats.contract import Opened, Unreadable
from capacity.domain.measurement.types import Contents, Flag, Setting, Skipped, Stage

UNLIMITED: Final = 1e6
"""A request rate from here on is no rate: everything is sent at once (some scripts write 1e9 where others write inf)."""

_FIRST: Final = 20
_LONGEST_TEXT: Final = 200
_GREATEST_COUNT: Final = 2**53
_MS_PER: Final = {"ms": 1.0, "s": 1e3, "sec": 1e3, "secs": 1e3, "second": 1e3, "seconds": 1e3, "us": 1e-3, "µs": 1e-3, "ns": 1e-6}
_PERCENTILE: Final = re.compile(r"p(\d{1,2})(?:[.p](\d{1,3}))?")

Row = tuple[Setting, Stage] | Skipped


def number(value: Any) -> float | None:
    """A finite number, also one written as text ("550", "1,234.5"); a truth value is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value.replace(",", "") if isinstance(value, str) else value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def amount(value: Any) -> float | None:
    """A number that is not below 0."""
    found = number(value)
    return None if found is None or found < 0 else found


def positive(value: Any) -> float | None:
    return amount(value) or None


def count(value: Any) -> int | None:
    """A whole number that is not below 0; 64.0 is 64, 2.5 is none."""
    found = amount(value)
    return int(found) if found is not None and found <= _GREATEST_COUNT and found == int(found) else None


def level(value: Any) -> int | None:
    """A concurrency that was asked for: a whole number from 1 on."""
    return count(value) or None


def text(value: Any) -> str | None:
    """A short text in one line, without what a terminal or a page would act on; None for anything else and for an empty one."""
    if not isinstance(value, str):
        return None
    shown = " ".join("".join(letter if letter.isprintable() else " " for letter in value[:_LONGEST_TEXT]).split())
    return shown or None


def at(document: Any, *path: str | int) -> Any:
    """What stands at `path` (keys of objects, places in lists); None where any step is missing."""
    for step in path:
        if isinstance(document, Mapping):
            document = document.get(step)
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return None
    return document


def entries(value: Any) -> list[Any]:
    """`value` where it is a list, else none."""
    return value if isinstance(value, list) else []


def product(*values: float | None) -> float | None:
    """All multiplied; None where one is unknown or the result is too large to be a number."""
    known = [value for value in values if value is not None]
    return number(math.prod(known)) if len(known) == len(values) else None


def ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else number(above / below)


def ms_per(unit: Any) -> float | None:
    """How many ms one of `unit` ("ms", "sec", "s/token" …) is; None for a unit that is none of time."""
    return _MS_PER.get(str(unit).strip().lower().partition("/")[0]) if isinstance(unit, str) else None


def statistics(found: Any, factor: float | None = 1.0) -> dict[str, float]:
    """`{"avg": …, "p99": …, "median": …}` → `{"mean": ms, "p99": ms, "p50": ms}`; `factor` makes ms of its unit.

    What is not above 0 is left out: tools write 0.0 where nothing was measured.
    """
    if not isinstance(found, Mapping) or factor is None:
        return {}
    named = ((_statistic(key), positive(product(number(value), factor))) for key, value in found.items())
    return {name: value for name, value in named if name is not None and value is not None}


def _statistic(key: Any) -> str | None:
    """The name of a statistic in a `Stage`; None for one that no bound can rest on (min, max, deviation)."""
    word = str(key).strip().lower()
    if word in ("mean", "avg", "average"):
        return "mean"
    match = _PERCENTILE.fullmatch("p50" if word == "median" else word)
    if match is None:
        return None
    whole, part = match.groups()
    return f"p{int(whole)}" + (f".{part}" if part and int(part) else "")


def ending(document: Mapping[str, Any], end: str) -> dict[str, Any]:
    """`{"mean_ttft_ms": 1, …}` → `{"mean": 1, …}` for the keys that end with `_ttft_ms`."""
    return {key.removesuffix(f"_{end}"): value for key, value in document.items() if str(key).endswith(f"_{end}")}


def named(heading: Any) -> tuple[str, str]:
    """`Request Latency (ms)` → `("request latency", "ms")`; a heading without a unit has an empty one."""
    words = str(heading or "").strip().lower()
    name, _, unit = words.rpartition("(")
    return (name.strip(), unit[:-1].strip()) if name and unit.endswith(")") else (words, "")


def mean_length(total: Any, requests: Any) -> int | None:
    """The mean length of a request in whole tokens."""
    return rounded(ratio(positive(total), positive(requests)))


def is_drawn(total: Any, requests: Any) -> bool:
    """Whether the lengths of requests differ: equal ones add up to a whole number for each."""
    found = ratio(positive(total), positive(requests))
    return found is not None and found != int(found)


def rounded(value: Any) -> int | None:
    found = positive(value)
    return None if found is None or found > _GREATEST_COUNT else max(1, round(found))


def utc(seconds: Any) -> str | None:
    """Seconds since 1970 as `2026-11-30T02:00:00Z`."""
    known = positive(seconds)
    try:
        return None if known is None else datetime.fromtimestamp(known, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return None


def hints(**found: Any) -> dict[str, str]:
    """What a file says besides, as text; what is unknown is left out. `gpus=8` → `{"gpus": "8"}`."""
    return {name: shown for name, value in found.items() if value not in (None, "") and (shown := text(str(value)))}


def flags(errors: int | None, *, weak: bool = False, **others: bool) -> frozenset[Flag]:
    """The flags that only a reader can know; `errors` None is a flag of its own."""
    found = {"weak": weak, "errors_unknown": errors is None, **others}
    return frozenset(name for name, holds in found.items() if holds)  # type: ignore[misc]


def unfinished(where: str, requests: int | None, errors: int | None) -> Skipped | None:
    """A run without a finished request, as the row that is left out; None where some finished or nobody counted."""
    if requests != 0:
        return None
    failed = f"all {errors} failed" if errors else "none finished"
    return Skipped(where=where, why=f"of its requests {failed}, so its latencies and rates say nothing.")


def any_is(opened: Opened, is_mine: Callable[[Any], bool]) -> bool:
    """Whether one of the first documents is a tool's."""
    return any(is_mine(document) for document in opened.documents[:_FIRST])


def each(opened: Opened, name: str, is_mine: Callable[[Any], bool], read: Callable[[str, Any], Row]) -> Contents:
    """One row for each document of the file; one that is not the tool's is left out."""
    several = len(opened.documents) > 1
    places = (
        (f"{opened.where}, run {place}" if several else opened.where, found) for place, found in enumerate(opened.documents, 1)
    )
    left_out = f"it is no result of {name}."
    return contents(read(where, found) if is_mine(found) else Skipped(where=where, why=left_out) for where, found in places)


def contents(rows: Iterable[Row]) -> Contents:
    """What was read; Unreadable with the reason of the first row where nothing can be used."""
    found = tuple(rows)
    skipped = tuple(row for row in found if isinstance(row, Skipped))
    stages = tuple(row for row in found if not isinstance(row, Skipped))
    if stages:
        return Contents(stages=stages, skipped=skipped)
    raise Unreadable(_nothing(skipped))


def _nothing(skipped: tuple[Skipped, ...]) -> str:
    if not skipped:
        return "it holds no run."
    return skipped[0].why if len(skipped) == 1 else f"none of its {len(skipped)} runs is usable; the first: {skipped[0].why}"
