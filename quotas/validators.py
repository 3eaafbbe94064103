"""What a name, a resource class and a quota's target may look like. Used by forms, API and models alike."""

from __future__ import annotations

import re
import unicodedata

from django.core.exceptions import ValidationError

LARGEST = 10**12
CLASS_SEGMENT = re.compile(r"[a-z0-9][a-z0-9._-]*")


def validate_name(value: str) -> None:
    """Any text of up to 200 characters that can be a line and a path: no control characters, no empty or dot segments."""
    if value != value.strip() or not value:
        raise ValidationError("A name has at least one character and no space at its ends.")
    if any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in value):
        raise ValidationError("A name has no control characters or line breaks.")
    if any(segment in {"", ".", ".."} for segment in value.split("/")):
        raise ValidationError("A name has no empty, '.' or '..' part between slashes.")


def validate_resource_class(value: str) -> None:
    """A path such as `gpu/h100`: small letters, digits, dot, dash and underscore in each part."""
    if len(value) > 200 or not all(CLASS_SEGMENT.fullmatch(segment) for segment in value.split("/")):
        raise ValidationError(f"“{value}” is not a resource class: write it like gpu/h100 or cpu.")


def validate_target(value: str) -> None:
    """A resource class, or `model:NAME`."""
    if value.startswith("model:"):
        validate_name(value.removeprefix("model:"))
    else:
        validate_resource_class(value)
