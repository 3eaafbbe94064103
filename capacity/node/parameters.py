"""The parameters that a runtime template declares, and the check of a value that arrives in an order."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")
_INTEGER = re.compile(r"-?[0-9]{1,15}")
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_KEYS = {
    "integer": {"min", "max"},
    "number": {"min", "max"},
    "choice": {"choices"},
    "name": set(),
    "path": {"root"},
}


class Refused(ValueError):
    """An order that this host will never do; the text is one sentence for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One declared parameter. `minimum` and `maximum` bound integers and numbers, `root` holds paths."""

    name: str
    kind: str
    minimum: float = -math.inf
    maximum: float = math.inf
    choices: tuple[str, ...] = ()
    root: Path | None = None
    default: str | None = None

    def checked(self, value: str) -> str:
        """The text that goes into an argument; Refused with a sentence where the value is not allowed."""
        return _CHECKS[self.kind](self, value)


def parse_parameter(name: str, row: object) -> Parameter:
    """A TOML table → Parameter; ValueError says what is wrong in it."""
    if not isinstance(row, dict):
        raise ValueError(f"parameter {name} is not a table")
    kind = row.get("type")
    if kind not in _KEYS:
        raise ValueError(f"parameter {name} has type {kind!r}, which is not one of {', '.join(_KEYS)}")
    unknown = sorted(set(row) - _KEYS[kind] - {"type", "default"})
    if unknown:
        raise ValueError(f"parameter {name} of type {kind} has an unknown key {unknown[0]!r}")
    parameter = _built(name, kind, row)
    # A default path may be on a disk that is mounted later; it is checked when it is used, as any value is.
    if parameter.default is not None and kind != "path":
        parameter.checked(parameter.default)
    return parameter


def _built(name: str, kind: str, row: Mapping[str, Any]) -> Parameter:
    default = row.get("default")
    if default is not None and (not isinstance(default, str | int | float) or isinstance(default, bool)):
        raise ValueError(f"parameter {name} has a default that is no text or number")
    return Parameter(
        name=name,
        kind=kind,
        minimum=_bound(name, row, "min", -math.inf),
        maximum=_bound(name, row, "max", math.inf),
        choices=_choices(name, row) if kind == "choice" else (),
        root=_root(name, row) if kind == "path" else None,
        default=None if default is None else str(default),
    )


def _bound(name: str, row: Mapping[str, Any], key: str, default: float) -> float:
    value = row.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ValueError(f"parameter {name} has a {key} that is not a number")
    return value


def _choices(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    choices = row.get("choices")
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, str) for choice in choices):
        raise ValueError(f"parameter {name} needs choices, a list of texts")
    return tuple(choices)


def _root(name: str, row: Mapping[str, Any]) -> Path:
    root = row.get("root")
    if not isinstance(root, str) or not root.startswith("/"):
        raise ValueError(f"parameter {name} needs a root, an absolute path")
    return Path(root)


def _integer(parameter: Parameter, value: str) -> str:
    if not _INTEGER.fullmatch(value):
        raise Refused(f"Parameter {parameter.name} is not a whole number: {shown(value)}.")
    return _in_range(parameter, value)


def _number(parameter: Parameter, value: str) -> str:
    if not _NUMBER.fullmatch(value):
        raise Refused(f"Parameter {parameter.name} is not a plain decimal number: {shown(value)}.")
    return _in_range(parameter, value)


def _in_range(parameter: Parameter, value: str) -> str:
    if not parameter.minimum <= float(value) <= parameter.maximum:
        raise Refused(f"Parameter {parameter.name} is {value}, outside {parameter.minimum:g} to {parameter.maximum:g}.")
    return value


def _choice(parameter: Parameter, value: str) -> str:
    if value not in parameter.choices:
        raise Refused(f"Parameter {parameter.name} is {shown(value)}, not one of {', '.join(parameter.choices)}.")
    return value


def _name(parameter: Parameter, value: str) -> str:
    if not _SAFE_NAME.fullmatch(value):
        raise Refused(
            f"Parameter {parameter.name} is {shown(value)}; it must begin with a letter or digit "
            "and have only letters, digits and . _ : / @ + - (at most 200)."
        )
    return value


def _path(parameter: Parameter, value: str) -> str:
    root = parameter.root
    assert root is not None
    if not value or len(value) > 1_000 or "\0" in value:
        raise Refused(f"Parameter {parameter.name} is not a path.")
    # Links are followed before the comparison, so that no link below the root leads out of it.
    real_root, real = root.resolve(), (root / value).resolve()
    if not real.is_relative_to(real_root):
        raise Refused(f"Parameter {parameter.name} is {shown(value)}, which does not lie below {root}.")
    if not real.exists():
        raise Refused(f"Parameter {parameter.name} is {shown(value)}, which does not exist below {root} on this host.")
    return str(real)


_CHECKS = {"integer": _integer, "number": _number, "choice": _choice, "name": _name, "path": _path}


def shown(value: str) -> str:
    """A value as it may stand in a sentence: quoted, control characters escaped, at most 80 characters."""
    return repr(value if len(value) <= 80 else value[:79] + "…")
