"""A take-over in sentences, the same for page and command."""

from __future__ import annotations

from .domain.phrases import number
from .services import TakeOver


def sentences_of(done: TakeOver, *, is_preview: bool) -> list[str]:
    """Why, and what changes (or changed), in numbers."""
    will = "would be" if is_preview else "were"
    return [
        *(f"{problem['subject'].partition(':')[2]}: {problem['detail']}" for problem in done.problems),
        f"{number(done.hosts, 'host')} reported, {done.hosts_of_others} obeying another installation. "
        f"Generation {done.generation_before} → {done.generation}, installation {done.installation_before or 'none'} → "
        f"{done.installation}.",
        f"{number(done.running, 'replica')} run and are kept as they are, {done.adopted} of them unknown to the database; "
        f"{done.missing} that it has run nowhere.",
        f"{number(done.actions, 'open action')} and {number(done.intents, 'order')} not seen done {will} dropped.",
        f"From the next pass on {acting(done)}.",
    ]


def acting(done: TakeOver) -> str:
    """2 models are auto, 1 is advise."""
    parts = [f"{number(count, 'model')} {'is' if count == 1 else 'are'} {mode}" for mode, count in sorted(done.modes.items())]
    return ", ".join(parts) or "no model is there to act on"
