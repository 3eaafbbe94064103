"""A take-over in sentences, the same for page and command."""

from __future__ import annotations

from collections.abc import Iterator

from ..domain.phrases import number
from ..services import TakeOver


def sentences_of(done: TakeOver, *, is_preview: bool) -> list[str]:
    """Why, and what changes (or changed), in numbers."""
    return [
        *(f"{problem['subject'].partition(':')[2]}: {problem['detail']}" for problem in done.problems),
        written(done),
        running(done),
        *dropped(done, "would be" if is_preview else "were"),
        f"From the next pass on {acting(done)}.",
    ]


def written(done: TakeOver) -> str:
    hosts = f"{number(done.hosts, 'host')} reported"
    hosts += f", {done.hosts_of_others} obeying another installation" if done.hosts_of_others else ""
    changes = f"generation {done.generation_before} → {done.generation}"
    if done.installation != done.installation_before:
        changes += f", installation {done.installation_before or 'none'} → {done.installation}"
    return f"{hosts}; {changes}."


def running(done: TakeOver) -> str:
    told = f"{number(done.running, 'replica')} run and are kept as they are" if done.running else "No replica runs"
    told += f", {done.adopted} of them unknown to the database" if done.adopted else ""
    return f"{told}; {done.missing} that the database has run nowhere." if done.missing else f"{told}."


def dropped(done: TakeOver, will: str) -> Iterator[str]:
    if done.actions or done.intents:
        yield f"{number(done.actions, 'open action')} and {number(done.intents, 'order')} not seen done {will} dropped."


def acting(done: TakeOver) -> str:
    """2 models are auto, 1 is advise."""
    parts = [f"{number(count, 'model')} {'is' if count == 1 else 'are'} {mode}" for mode, count in sorted(done.modes.items())]
    return ", ".join(parts) or "no model is there to act on"
