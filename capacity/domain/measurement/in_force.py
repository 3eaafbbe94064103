"""Which of two measurements of a profile a plan rests on, in numbers (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

OUTSIDE: Final = "It was measured outside of the fleet, on an engine that may be another."
FAR_LESS: Final = 2
"""What says less than one part in so many of what is in force would surprise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a measurement says. `kind` empty: typed in. `is_current`: neither outdated nor assumed."""

    max_concurrency: int
    kind: str
    measured_at: datetime
    is_current: bool

    @property
    def briefly(self) -> str:
        """`6 in flight (located)`."""
        kind = f" ({self.kind.replace('_', ' ')})" if self.kind else ""
        return f"{self.max_concurrency} in flight{kind}"


def aside_why(new: Said, before: Said | None, *, outside: bool) -> str:
    """Why the new one is not put in force by itself; empty: it is. A trial on two levels must not take the place of what was
    located. `before`: what is in force; `outside`: swept at an address outside of the fleet."""
    if outside:
        return OUTSIDE
    if before is None or not before.is_current or before.max_concurrency <= new.max_concurrency:
        return ""
    far_less = FAR_LESS * new.max_concurrency < before.max_concurrency
    vague = new.kind != "located" and before.kind == "located"
    if not (far_less or vague):
        return ""
    return f"It says {new.briefly}, and {before.briefly} is in force since {before.measured_at:%Y-%m-%d}."


def placed(new: Said, before: Said | None) -> str:
    """Where one that comes in stands beside what is in force; empty where that is no current one."""
    if before is None or not before.is_current:
        return ""
    if new.measured_at < before.measured_at:
        when = f"{new.measured_at:%Y-%m-%d %H:%M} UTC, before what is in force ({before.measured_at:%Y-%m-%d %H:%M})"
        return f"It was measured {when}: {before.briefly} stays in force."
    return replaces(new, before)


def replaces(new: Said, before: Said | None) -> str:
    """What putting it in force comes to."""
    then = "" if new.max_concurrency else " The profile is then started for no load at all."
    if before is None:
        return f"{new.briefly} is then in force; now nothing is.{then}"
    return f"{new.briefly} then takes the place of {before.briefly}.{then}"
