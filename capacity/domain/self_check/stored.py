"""A state and its finding as they are stored with the measurement."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from capacity.domain.self_check.judge import shape_of
from capacity.domain.self_check.types import Finding, Slot, State

LARGEST: Final = 1e15
"""Beyond it floats would round what was counted."""


def document(state: State, found: Finding, at: datetime) -> dict[str, Any]:
    live = shape_of(state)
    return {
        "at": at.isoformat(),
        "kind": found.kind,
        "sentence": found.sentence,
        "off_shape": "; ".join(found.off_shape),
        "input_tokens": live.input_tokens,
        "output_tokens": live.output_tokens,
        "prefix_hit_rate": live.prefix_hit_rate,
        "of": state.of,
        "slots": [
            [slot.at.isoformat(), slot.seconds, slot.seconds_below, slot.seconds_above, *_plain(slot)] for slot in state.slots
        ],
    }


def _plain(slot: Slot) -> list[dict[str, Any]]:
    return [{k: list(v) for k, v in slot.below.items()}, {k: list(v) for k, v in slot.above.items()}, dict(slot.counts)]


def read(stored: Any) -> State:
    """A stored state; an empty one where there is none that can be read, or where it ended with a contradiction: whoever put the
    measurement back into force is not contradicted by what he knew."""
    try:
        if stored["kind"] == "optimistic":
            return State()
        return State(of=str(stored["of"]), slots=tuple(_slot(row) for row in stored["slots"]))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return State()


def _slot(row: Any) -> Slot:
    at, seconds, seconds_below, seconds_above, below, above, counts = row
    return Slot(
        at=_instant(at),
        seconds=_number(seconds),
        seconds_below=_number(seconds_below),
        seconds_above=_number(seconds_above),
        below={name: (_count(quick), _count(count)) for name, (quick, count) in below.items()},
        above={name: (_count(quick), _count(count)) for name, (quick, count) in above.items()},
        counts={name: _count(value) for name, value in counts.items()},
    )


def _instant(text: str) -> datetime:
    """ValueError for one of no time zone: it can be laid beside no other."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return found


def _count(value: Any) -> int:
    return int(_number(value))


def _number(value: Any) -> float:
    """ValueError for what no engine has ever counted."""
    found = float(value)
    if not 0 <= found <= LARGEST:
        raise ValueError(f"{found} is no count")
    return found
