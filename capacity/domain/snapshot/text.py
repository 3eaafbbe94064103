"""Snapshot text to JSON values, safely: numbers keep their text, and what is no JSON is one fault at `$`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from capacity.domain.snapshot.faults import Fault, InvalidSnapshot

LONGEST_INTEGER: Final = 18
"""Digits (with a sign) up to which an integer is converted at once; a longer one keeps its text."""


class Number:
    """A JSON number as it was written, so that a decimal stays exact and a huge one is judged before it is converted."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class RepeatedKeys(dict[str, object]):
    """An object that names a key twice: `repeated` lists those keys."""

    repeated: tuple[str, ...] = ()


def loads(text: str | bytes) -> object:
    """The JSON value of `text` (bytes are UTF-8), for `parse_snapshot`; raises `InvalidSnapshot` with the path `$`."""
    try:
        plain = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        value: object = json.loads(
            plain, parse_int=_integer, parse_float=Number, parse_constant=_no_constant, object_pairs_hook=_object
        )
    except UnicodeDecodeError as error:
        raise _no_json(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise _no_json(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise _no_json("nested too deeply") from None
    return value


def _integer(text: str) -> int | Number:
    return int(text) if len(text) <= LONGEST_INTEGER else Number(text)


def _no_constant(name: str) -> object:
    raise _no_json(f"not JSON: {name} is no number of JSON")


def _object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    seen: set[str] = set()
    twice = RepeatedKeys(plain)
    twice.repeated = tuple(dict.fromkeys(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return twice


def _no_json(message: str) -> InvalidSnapshot:
    return InvalidSnapshot((Fault(path="$", message=message),))
