"""One thing that needs a person."""

from __future__ import annotations

from dataclasses import dataclass

MOST_OF_A_KIND = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing: `subject` (bold) and `text` are its sentence, `url` and `act` the link that says what it shows; `code` names
    its paragraph in the runbook."""

    label: str
    level: str
    subject: str
    text: str
    url: str
    act: str
    place: str = "now"
    code: str = ""
