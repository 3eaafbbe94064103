"""An endpoint may say back what it was sent: its token stands in nothing that a sweep gives (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

from capacity.bench.asked import Swept

HIDDEN: Final = "***"
SHORTEST: Final = 4
"""Shorter ones stand in words by chance, and are no secret."""


def scrubbed(swept: Swept, token: str | None) -> Swept:
    """The same with `***` wherever the token was said back."""
    if token is None or len(token) < SHORTEST:
        return swept
    setting = swept.setting
    told = {field.name: _without(getattr(setting, field.name), token) for field in fields(setting)}
    return replace(
        swept, why=_without(swept.why, token), evidence=_without(swept.evidence, token), setting=replace(setting, **told)
    )


def _without(value: Any, token: str) -> Any:
    if isinstance(value, str):
        return value.replace(token, HIDDEN)
    if isinstance(value, Mapping):
        return {name: _without(inner, token) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_without(inner, token) for inner in value)
    return value
