"""What is wrong with a snapshot: one fault a place, all of them at once."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

PLAIN_KEY: Final = re.compile(r"[^\s\[\]\"'.:\\\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,100}")
LONGEST_SHOWN: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A JSON path and one clear sentence about what stands there."""

    path: str
    message: str


class InvalidSnapshot(Exception):
    """The document is no snapshot; `faults` names every place that is wrong. Nothing may be decided from it."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("; ".join(f"{fault.path}: {fault.message}" for fault in faults[:3]))
        self.faults = faults


class Faults:
    """Collects faults while a document is read."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: list[Fault] = []

    def add(self, path: str, message: str) -> None:
        self.found.append(Fault(path=path, message=message))


def below(path: str, key: str) -> str:
    """The path of `key` in the object at `path` ("" is the document): `models[0].name`; odd keys are quoted in brackets."""
    if not PLAIN_KEY.fullmatch(key):
        return f"{path or '$'}[{json.dumps(key[:LONGEST_SHOWN])}]"
    return f"{path}.{key}" if path else key


def shown(value: object) -> str:
    """A value as a message names it: short, on one line, in plain characters."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return json.dumps(
            value if len(value) <= LONGEST_SHOWN else value[:LONGEST_SHOWN] + "…", ensure_ascii=not value.isprintable()
        )
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _number(value)


def _number(value: object) -> str:
    if isinstance(value, int) and abs(value) >= 10**LONGEST_SHOWN:
        return "a number of more than 60 digits"
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:20]}… ({len(text)} characters)"
