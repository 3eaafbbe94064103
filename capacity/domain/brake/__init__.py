"""The brake: what of a plan is done at once, and what a person has to release. Pure."""

from .judge import counted, exempt, holds, judge, recent, release_of, standing
from .types import Bounds, Counted, Event, Manual, Release, Rule, Situation, Together, Verdict, Withheld
from .unready import Standing, together

__all__ = [
    "Bounds",
    "Counted",
    "Event",
    "Manual",
    "Release",
    "Rule",
    "Situation",
    "Standing",
    "Together",
    "Verdict",
    "Withheld",
    "counted",
    "exempt",
    "holds",
    "judge",
    "recent",
    "release_of",
    "standing",
    "together",
]
