"""ETag and If-Match: nobody overwrites what he has not seen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from rest_framework.utils.encoders import JSONEncoder

from .errors import Problem


def etag(representation: Mapping[str, Any], observed: frozenset[str] = frozenset()) -> str:
    """A hash of the representation. Fields that the passes keep up to date (`observed`) are left out: they are nobody's edit."""
    kept = {name: value for name, value in representation.items() if name not in observed}
    text = json.dumps(kept, sort_keys=True, cls=JSONEncoder)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def require_match(header: str | None, tag: str, representation: Mapping[str, Any]) -> None:
    """428 without If-Match; 412 with the current body where none of its tags is `tag`. `*` takes whatever is there."""
    if not header:
        raise Problem(428, "precondition_required", "Send If-Match with the ETag of what you have read.")
    given = {part.strip().removeprefix("W/") for part in header.split(",")}
    if given & {"*", tag}:
        return
    error = Problem(412, "stale", "Someone else has changed this since you read it.", extra={"current": representation})
    error.headers["ETag"] = tag
    raise error
