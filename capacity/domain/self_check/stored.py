"""A state and its finding as they are stored with the measurement."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from capacity.domain.self_check.judge import shape_of
from capacity.domain.self_check.types import Finding, Slot, State


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
    except (KeyError, TypeError, ValueError, AttributeError):
        return State()


def _slot(row: Any) -> Slot:
    at, seconds, seconds_below, seconds_above, below, above, counts = row
    return Slot(
        at=datetime.fromisoformat(at),
        seconds=float(seconds),
        seconds_below=float(seconds_below),
        seconds_above=float(seconds_above),
        below={name: (int(quick), int(count)) for name, (quick, count) in below.items()},
        above={name: (int(quick), int(count)) for name, (quick, count) in above.items()},
        counts={name: int(value) for name, value in counts.items()},
    )
