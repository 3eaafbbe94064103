"""Each rule of the brake as a sentence with its numbers."""

from __future__ import annotations

from capacity.domain.brake.types import Bounds, Manual, Together
from capacity.domain.phrases import number, span


def manual_sentence(manual: Manual) -> str:
    end = f"until {manual.until:%Y-%m-%d %H:%M} UTC" if manual.until else "until a person releases it"
    return f"The brake is on: everything is withheld {end}."


def manual_then() -> str:
    """What a pass withheld under a brake that is off by now."""
    return "The brake was on in the last pass, and everything was withheld. The next pass decides anew."


def stops_sentence(bounds: Bounds, allowed: int) -> str:
    """Without the pool's number of replicas: who reads it may see some of them only."""
    return (
        f"More than the {number(allowed, 'stop')} that pass in {span(bounds.window_seconds)} (the larger of {bounds.stops} and "
        f"{bounds.stop_percent} % of the pool's ready replicas)."
    )


def starts_sentence(bounds: Bounds, resource: str, units: int) -> str:
    return (
        f"More than the {number(bounds.starts, 'start')} that pass in {span(bounds.window_seconds)}, and than "
        f"{bounds.start_percent} % of the units of {resource}, which is {units}."
    )


def together_sentence(together: Together) -> str:
    return (
        f"{together.count} of {number(together.of, 'replica')} turned unready at about the same time: a broken probe looks like "
        "this, and they may still serve."
    )
