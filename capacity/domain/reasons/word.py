"""A word of the one table, and how tables are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """`title` fits a table cell; `sentence` is what an operator would say on the phone; `outcomes` are those of a reason."""

    code: str
    title: str
    sentence: str
    outcomes: tuple[str, ...] = ()


def table(words: Iterable[Word]) -> Mapping[str, Word]:
    return {word.code: word for word in words}


def reason(code: str, outcomes: str, title: str, sentence: str) -> Word:
    return Word(code=code, title=title, sentence=sentence, outcomes=tuple(outcomes.split()))
