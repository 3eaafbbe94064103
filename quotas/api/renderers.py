"""Answers of the API as JSON, whatever stands in the database."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rest_framework.renderers import JSONRenderer


class Json(JSONRenderer):
    """A number that is not finite, or half a character, that somebody wrote into a row by hand breaks no list."""

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        try:
            return super().render(data, accepted_media_type, renderer_context)
        except ValueError:  # of which encoding errors are a kind
            return super().render(sayable(data), accepted_media_type, renderer_context)


def sayable(value: Any) -> Any:
    """The same with null for what is no finite number, and ? for what UTF-8 cannot say."""
    if isinstance(value, Mapping):
        return {sayable(str(key)): sayable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [sayable(inner) for inner in value]
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    return None if isinstance(value, float) and not math.isfinite(value) else value
