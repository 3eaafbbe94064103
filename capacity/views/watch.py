"""The watch over a model's last removal, in words, while it matters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ..domain.probation import REST, read, sentence
from ..models import LanguageModel

CONTRADICTED = "Live latencies contradict a measurement of it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """`rests_until` None: removals do not rest."""

    level: str
    sentence: str
    rests_until: datetime | None


def watched(model: LanguageModel, now: datetime) -> Watched | None:
    """None where there is no watch, or its verdict is older than a day."""
    watch = read(model.probation)
    until = model.removals_rest_until
    rests_until = until if until is not None and until > now else None
    if rests_until and (watch is None or watch.result != "failed"):
        return Watched(level="warn", sentence=CONTRADICTED, rests_until=rests_until)
    if watch is None or (not rests_until and watch.decided_at is not None and now - watch.decided_at > REST):
        return None
    levels = {"": "accent", "held": "good", "failed": "warn", "unknown": "unknown"}
    return Watched(level=levels[watch.result], sentence=sentence(watch), rests_until=rests_until)
