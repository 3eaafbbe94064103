"""What is wrong with a stored row. Raw SQL and older versions may have left anything; it is named and hurts no other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ..observation.served_names import contested, plain
from .types import ModelRow, Problem, ProfileRow


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


def own_names(model: str, value: Any, problems: list[Problem]) -> list[str]:
    if isinstance(value, list) and plain(value) == value:
        return plain(value)
    problems.append(invalid(f"model:{model}", "its served_names are no list of names; it is asked for by its own name alone"))
    return []


def shared_names(models: dict[str, ModelRow], problems: list[Problem]) -> dict[str, ModelRow]:
    """A name that two models serve under is one's alone."""
    lost: dict[str, set[str]] = defaultdict(set)
    for name, alias, owner in contested((row.name, row.served_names) for row in models.values()):
        lost[name].add(alias)
        detail = f"{owner} is asked for by “{alias}” too, and has those requests; take the name off one of them"
        problems.append(invalid(f"model:{name}", detail))
    for name, aliases in lost.items():
        models[name] = replace(models[name], served_names=[kept for kept in models[name].served_names if kept not in aliases])
    return models


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
