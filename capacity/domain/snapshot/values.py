"""Single values of a snapshot, read exactly. Each reader gives the value, or None after it has named the fault."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final

from capacity.domain.snapshot.faults import Faults, below, shown
from capacity.domain.snapshot.text import Number, RepeatedKeys
from capacity.domain.types import UNKNOWN, Unknown

LARGEST: Final = 10**12
LONGEST_NUMBER: Final = 100
LARGEST_EXPONENT: Final = 400
Reader = Callable[[object, str, Faults], object]

_NUMBER: Final = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
_DECIMAL: Final = re.compile(r"[0-9]{1,100}(\.[0-9]{1,100})?")
_RATIO: Final = re.compile(r"([0-9]{1,100})/([0-9]{1,100})")
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})")


def exact(value: object) -> Fraction | None:
    """The number as it was written; None for what is no number, not finite, or too long to be meant."""
    if isinstance(value, bool) or not isinstance(value, int | float | Number):
        return None
    if isinstance(value, int):
        return Fraction(value) if abs(value) <= 10**LONGEST_NUMBER else None
    parts = _NUMBER.fullmatch(repr(value))
    if parts is None or len(repr(value)) > LONGEST_NUMBER:
        return None
    sign, whole_digits, decimals, exponent = parts.groups(default="")
    if exponent and (len(exponent) > 4 or abs(int(exponent)) > LARGEST_EXPONENT):
        return None
    number = Fraction(int(sign + whole_digits + decimals)) * Fraction(10) ** (int(exponent or 0) - len(decimals))
    return -number if number > 0 and sign else number


def whole(value: object) -> int | None:
    """The whole number from −10^12 to 10^12 that is written there (3.0 is 3), else None."""
    if type(value) is int:
        return value if -LARGEST <= value <= LARGEST else None
    number = exact(value)
    if number is None or number.denominator != 1 or abs(number) > LARGEST:
        return None
    return int(number)


def sample(value: object) -> int | None:
    """A whole number 0 … 10^12; anything else is unknown (None) and never a fault."""
    number = whole(value)
    return number if number is not None and number >= 0 else None


def read_sample(value: object, path: str, faults: Faults) -> int | None:
    return sample(value)


def read_peak(value: object, path: str, faults: Faults) -> int | Unknown | None:
    """None where none was kept; UNKNOWN where something stands there that is no sample."""
    if value is None:
        return None
    number = sample(value)
    return UNKNOWN if number is None else number


def count_from(least: int) -> Reader:
    """Reads a whole number from `least` to 10^12."""

    def read(value: object, path: str, faults: Faults) -> int | None:
        number = whole(value)
        if number is None or number < least:
            faults.add(path, f"{shown(value)} is not a whole number from {least} to {LARGEST}")
            return None
        return number

    return read


def read_decimal(value: object, path: str, faults: Faults) -> Fraction | None:
    number = exact(value)
    if number is None or not 0 <= number <= LARGEST:
        faults.add(path, f"{shown(value)} is not a decimal number from 0 to {LARGEST}")
        return None
    return number


def read_fraction(value: object, path: str, faults: Faults) -> Fraction | None:
    """A decimal or a fraction in a string, from 0 to 1: "0.70", "7/10"."""
    number = fraction_of(value) if isinstance(value, str) else None
    if number is None or number > 1:
        faults.add(path, f'{shown(value)} is not a decimal or fraction between 0 and 1 in a string, such as "0.70" or "7/10"')
        return None
    return number


def fraction_of(text: str) -> Fraction | None:
    """The exact value of "0.70" or "7/10"; None for anything else, a zero denominator too."""
    ratio = _RATIO.fullmatch(text)
    if ratio is not None:
        return Fraction(int(ratio[1]), int(ratio[2])) if int(ratio[2]) else None
    return Fraction(text) if _DECIMAL.fullmatch(text) else None


def read_time(value: object, path: str, faults: Faults) -> datetime | None:
    """An instant with its zone, as UTC: `2026-11-30T12:00:00Z`."""
    moment = time_of(value) if isinstance(value, str) else None
    if moment is None:
        faults.add(path, f"{shown(value)} is not a time such as 2026-11-30T12:00:00Z")
    return moment


def time_of(text: str) -> datetime | None:
    if not _TIME.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def read_flag(value: object, path: str, faults: Faults) -> bool | None:
    if isinstance(value, bool):
        return value
    faults.add(path, f"{shown(value)} is not true or false")
    return None


def read_text(value: object, path: str, faults: Faults) -> str | None:
    """Text that can be written as UTF-8; a lone surrogate is none."""
    if isinstance(value, str) and encodable(value):
        return value
    faults.add(path, f"{shown(value)} is not text")
    return None


def read_name(value: object, path: str, faults: Faults) -> str | None:
    if value == "":
        faults.add(path, "a name must not be empty")
        return None
    return read_text(value, path, faults)


def encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_class(value: object, path: str, faults: Faults) -> str | None:
    """A resource class: a path of segments without empty ones."""
    name = read_name(value, path, faults)
    if name is not None and (not all(name.split("/")) or name.startswith("model:")):
        faults.add(path, f"{shown(name)} is not a resource class such as gpu/h100")
        return None
    return name


def read_target(value: object, path: str, faults: Faults) -> str | None:
    """A resource class, or `model:NAME`."""
    if isinstance(value, str) and value.startswith("model:") and value != "model:":
        return read_text(value, path, faults)
    return read_class(value, path, faults)


def one_of(words: tuple[str, ...]) -> Reader:
    """Reads one of a fixed list of words."""

    def read(value: object, path: str, faults: Faults) -> str | None:
        if isinstance(value, str) and value in words:
            return value
        faults.add(path, f"{shown(value)} is not one of {', '.join(words)}")
        return None

    return read


def or_null(read: Reader) -> Reader:
    """The same, and null is None."""

    def read_or_null(value: object, path: str, faults: Faults) -> object:
        return None if value is None else read(value, path, faults)

    return read_or_null


def mapping_of(read_key: Reader, read_value: Reader) -> Reader:
    """Reads an object of any keys."""

    def read(value: object, path: str, faults: Faults) -> dict[str, object] | None:
        if not isinstance(value, dict):
            faults.add(path, f"{shown(value)} is not an object")
            return None
        if isinstance(value, RepeatedKeys):
            name_repeated(value, path, faults)
        place = {key: below(path, key) for key in value}
        return {key: read_value(item, place[key], faults) for key, item in value.items() if read_key(key, place[key], faults)}

    return read


def name_repeated(value: RepeatedKeys, path: str, faults: Faults) -> None:
    for key in value.repeated:
        faults.add(below(path, key), "stands twice in this object")


def read_names(value: object, path: str, faults: Faults) -> tuple[str, ...] | None:
    """A list of names, as a tuple."""
    if not isinstance(value, list):
        faults.add(path, f"{shown(value)} is not a list of names")
        return None
    names = [read_name(item, f"{path}[{index}]", faults) for index, item in enumerate(value)]
    return tuple(name for name in names if name is not None)
