"""Which reasons need a person, and the words for a reason (from the one table of the domain)."""

from __future__ import annotations

from ..domain.reasons import BRAKES, LIMITS, NOTICES, PROBLEMS, REASONS, Word

# Held back although something is wanted: what the filter "could not" shows.
COULD_NOT = frozenset(
    {
        "at_limit",
        "at_max",
        "awaiting_reclaim",
        "bounds_conflict",
        "guarantee_reserved",
        "inventory_unknown",
        "no_room",
        "not_active",
        "policy_unavailable",
        "room_unknown",
        "unmeasured",
    }
)
# Of these, the ones that always mean that something is wanted; "unmeasured" also holds removals.
SHORT = COULD_NOT - {"unmeasured"}
UNKNOWING = frozenset({"metrics_unknown", "inventory_unknown", "lease_lost"})
BUSY = frozenset({"below_min", "wake", "over_capacity", "reclaim_fill", "starting_covers"})
# While one of these holds, a model is not said to be well.
UNWELL = SHORT | UNKNOWING | BUSY | {"paused", "start_timeout"}


def title(code: str) -> str:
    """A reason's or a problem's short words, as they stand within a line."""
    word = _word(code)
    return f"{word.title[:1].lower()}{word.title[1:]}" if word else code.replace("_", " ")


def sentence(code: str) -> str:
    """A reason or a problem told in a sentence."""
    word = _word(code)
    return word.sentence if word else title(code)


def _word(code: str) -> Word | None:
    return next((table[code] for table in (REASONS, PROBLEMS, NOTICES, LIMITS, BRAKES) if code in table), None)
