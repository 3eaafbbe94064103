"""Reading a body: JSON only, at most 10 MB, nothing that a database could not store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from .errors import Problem

LARGEST_BODY_BYTES = 10 * 1024 * 1024


class RawJSONParser(BaseParser):
    """The body as bytes, for a reader that is stricter about numbers than Python's own."""

    media_type = "application/json"

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        text = stream.read(LARGEST_BODY_BYTES + 1)
        if len(text) > LARGEST_BODY_BYTES:
            raise Problem(413, "too_large", "The body is larger than 10 MB.")
        return text


class BoundedJSONParser(RawJSONParser):
    """The body as JSON. NaN, repeated keys, NUL and half characters are refused: they would be lost or could not be stored."""

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        text = super().parse(stream, media_type, parser_context)
        try:
            value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeError:
            raise ParseError("The body is not text in UTF-8.") from None
        except RecursionError:
            raise ParseError("The body is nested too deeply.") from None
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {str(error)[:200]}") from None
        if b"\\u0000" in text and _has_nul(value):
            raise ParseError("The body has a NUL character.")
        return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object.")
    return found


def _has_nul(value: Any) -> bool:
    """Without recursion: what the parser could still read may be nested deeper than the stack that is left."""
    rest = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, str) and "\0" in one:
            return True
        if isinstance(one, dict):
            rest.extend([*one.keys(), *one.values()])
        elif isinstance(one, list):
            rest.extend(one)
    return False
