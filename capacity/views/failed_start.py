"""Why the last start of a model failed, where it rests for that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ..models import Backoff, LanguageModel

MOST_CHARACTERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedStart:
    """`words`: the last that its host heard of it, the end of them; empty: it said nothing."""

    profile: str
    node: str
    words: str
    again_at: datetime


def failed_start(model: LanguageModel, now: datetime) -> FailedStart | None:
    """The failure that rests longest; None where nothing of the model rests now."""
    rows = Backoff.objects.filter(profile__model=model, until__gt=now).select_related("profile", "node")
    row = rows.order_by("-until", "-id").first()
    if row is None:
        return None
    words = " ".join(row.message.split())
    short = words if len(words) <= MOST_CHARACTERS else f"… {words[-MOST_CHARACTERS:]}"
    return FailedStart(profile=row.profile.name, node=row.node.name, words=short.rstrip("."), again_at=row.until)
