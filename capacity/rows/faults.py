"""What is wrong with a stored row. Raw SQL and older versions may have left anything; it is named and hurts no other."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from .types import Problem, ProfileRow


def node_fault(resources: Any, labels: Any) -> str:
    if not isinstance(resources, dict) or not all(whole(units) for units in resources.values()):
        return "its resources are not classes with whole units; it offers nothing"
    return "" if is_text_map(labels) else "its labels are not text for text; it offers nothing"


def whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**12


def is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(k, str) and isinstance(v, str) for k, v in value.items())


def invalid(subject: str, detail: str) -> Problem:
    return {"code": "invalid_row", "subject": subject, "detail": detail}


def own_fraction(values: Mapping[str, Any], problems: list[Problem]) -> Fraction | None:
    text = values["scale_down_fraction"]
    if not text:
        return None
    share = fraction(text)
    if share is None:
        problems.append(invalid(f"model:{values['name']}", f"scale_down_fraction “{text}” is no share; the pool's is used"))
    return share


def fraction(text: str) -> Fraction | None:
    """An exact share between 0 and 1, None where the text is none."""
    try:
        share = Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None
    return share if 0 < share < 1 else None


def profile_fault(row: ProfileRow) -> str:
    if not is_text_map(row.selector):
        return "its selector is not text for text; nothing is started on it"
    return "" if row.units >= 1 and row.hosts >= 1 else "it takes no units; nothing is started on it"
