"""Numbers and lists in sentences, and what stopped more."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from capacity.domain.load import Tally
from capacity.domain.types import LimitedBy

MOST_NAMED: Final = 4


def number(count: int, noun: str) -> str:
    """1 replica, 2 replicas."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def were(count: int, noun: str) -> str:
    return f"{number(count, noun)} {'was' if count == 1 else 'were'}"


def percent(fraction: Fraction) -> str:
    """70 %, 66.7 %, as people read it."""
    value = fraction * 100
    return f"{value.numerator} %" if value.denominator == 1 else f"{decimal(value)} %"


def decimal(value: Fraction) -> str:
    """One digit after the point where there is more than a whole number; 26.6, 27."""
    tenths = (value * 10).__round__()
    return str(tenths // 10) if tenths % 10 == 0 else f"{tenths // 10}.{tenths % 10}"


def span(seconds: int) -> str:
    """10 min, 90 s, 2 h: the largest unit that it is a whole number of."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds % size == 0 and seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def demand(tally: Tally) -> str:
    held = tally.model.held_requests
    running = tally.demand_low - (held or 0)
    if not held:
        return number(running, "request") + " in flight"
    if not running:
        return f"{number(held, 'request')} held at the gateway"
    return f"{tally.demand_low} requests ({running} in flight, {held} held at the gateway)"


def verb(tally: Tally) -> str:
    return "is" if tally.demand_low == 1 else "are"


def served(tally: Tally) -> str:
    """What runs and what is on its way, in requests; one of the two there must be."""
    if tally.ready:
        text = f"the {tally.capacity_ready} that {were(len(tally.ready), 'ready replica')} measured to serve within the SLO"
    else:
        return f"the {tally.capacity_starting} that {were(len(tally.starting), 'starting replica')} measured to serve"
    if tally.starting:
        text += f" and the {tally.capacity_starting} of {number(len(tally.starting), 'starting one')}"
    return text


def names(texts: Sequence[str]) -> str:
    """The first few, and how many more."""
    shown = ", ".join(texts[:MOST_NAMED])
    return shown if len(texts) <= MOST_NAMED else f"{shown} and {len(texts) - MOST_NAMED} more"


def giving(given: Mapping[str, Sequence[str]]) -> str:
    """`given`: who is owed it → the replicas that go for him."""
    parts = [f"{names(replicas)} for {asker}" for asker, replicas in given.items()]
    return f"Gives back {', '.join(parts)}, which {'is' if len(given) == 1 else 'are'} entitled to it"


_GIVEN: Final = re.compile(r"Gives back (.+?), which (?:is|are) entitled to it")


def without_askers(text: str, may_name: Callable[[str], bool]) -> str:
    """The sentence without whom it is for, where that is not to be told."""
    return _GIVEN.sub(lambda found: found[0] if all(map(may_name, _askers(found[1]))) else _GIVEN_TO_SOMEBODY, text)


def names_askers(text: str) -> bool:
    return _GIVEN.search(text) is not None


_GIVEN_TO_SOMEBODY: Final = "Gives back what somebody else is entitled to"


def _askers(parts: str) -> list[str]:
    return [part.rpartition(" for ")[2] for part in parts.split(", ") if " for " in part] or [parts]


_FRACTION_OF_A_SECOND: Final = re.compile(r"(?<=:\d\d)\.\d+Z")

_PHRASES: Final[Mapping[str, str]] = {
    "limit": "the limit of {scope} on {target} is {limit} and {used} are used or just granted",
    "room": "{resource} has {free} free, at most {largest_free} on one node",
    "max_replicas": "the maximum is {max}",
    "guarantee_reserved": "{units} are kept for {scope}",
    "step": "at most {max} are added in one pass",
    "unmeasured": "{profile} is not measured",
    "unable": "{profile} was measured to miss the target even without load",
    "not_active": "{profile} takes no new ones",
    "backoff": "{profile} failed to run there and rests until {until}",
    "unknown": "the {store} could not be read",
    "brake": "the brake withholds {withheld}: {rule}",
}


def stop_phrase(stop: LimitedBy) -> str:
    """One thing that was in the way, with its numbers."""
    # nobody acts on fractions of a second
    return _FRACTION_OF_A_SECOND.sub("Z", _PHRASES[stop.kind].format(**stop.facts))
