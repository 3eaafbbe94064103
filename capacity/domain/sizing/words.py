"""A sizing in sentences: the verdict, what was in the way, what would make it fit, the hold line, the command to copy."""

from __future__ import annotations

import shlex
from fractions import Fraction
from typing import Final

from capacity.domain.phrases import names, number, percent, stop_phrase
from capacity.domain.sizing.question import DEFAULTS, UNITS, Question
from capacity.domain.sizing.types import Answer, MissingLimit, MissingUnits
from capacity.domain.types import LimitedBy

VERDICTS: Final = {"fits": "Fits", "partial": "Fits in part", "none": "Does not fit", "unknown": "Not known"}


def amount(value: Fraction) -> str:
    """8,800 or 268.8: one digit after the point where it is not whole, never rounded up."""
    tenths = value.numerator * 10 // value.denominator
    whole, tenth = divmod(tenths, 10)
    return f"{whole:,}.{tenth}" if tenth else f"{whole:,}"


def sentence(answer: Answer) -> str:
    """The verdict in one sentence."""
    asked = f"{amount(answer.question.amount)} {UNITS[answer.question.unit]}"
    if answer.verdict == "unknown":
        return f"Not known: whether {answer.model} can serve {asked} cannot be said, for {_stopped(answer)}."
    if answer.verdict == "none":
        return f"Does not fit: {answer.model} can serve nothing of {asked}, for {_stopped(answer)}."
    served = f"serving {_served(answer, asked)}{_with_headroom(answer)}"
    if answer.verdict == "fits" and not answer.added:
        return f"Fits as it is: {number(answer.have, 'replica')} of {answer.model} {_are(answer.have)} there, {served}."
    if answer.verdict == "fits":
        return f"Fits: {answer.model} {_has_needs(answer)}, {served}."
    if answer.is_covered:
        return (
            f"Fits in part: {answer.model} {_gets(answer)}, {served}: the demand is covered, and not all spare ones find a place."
        )
    return f"Fits in part: {answer.model} {_gets(answer)}, {served} ({percent(answer.share)})."


def _served(answer: Answer, asked: str) -> str:
    """`6,000 of 8,000 output tokens/s`; where it is enough, what it can serve beyond."""
    if answer.served <= answer.question.amount:
        return f"{amount(answer.served)} of {asked}"
    return f"{asked}, and {amount(answer.served)} at most"


def _with_headroom(answer: Answer) -> str:
    question = answer.question
    parts = [f"{percent(question.headroom)} headroom"] if question.headroom else []
    if question.spare:
        parts.append(f"{question.spare} spare")
    return f" with {' and '.join(parts)}" if parts else ""


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _has_needs(answer: Answer) -> str:
    total = answer.have + answer.added
    return f"has {answer.have} and needs {number(total, 'replica')} (+{answer.added}: {added(answer)})"


def _gets(answer: Answer) -> str:
    if not answer.added:
        return f"has {number(answer.have, 'replica')} and finds no more"
    return f"has {answer.have} and finds {answer.added} more ({added(answer)})"


def added(answer: Answer) -> str:
    """2 × h100x2, 1 × a100x2."""
    return names([f"{row.add} × {row.profile}" for row in answer.rows if row.add])


def _stopped(answer: Answer) -> str:
    evidence = [stop for stop in answer.binding if stop.kind in ("unmeasured", "unknown")]
    chosen = evidence if answer.verdict == "unknown" and evidence else answer.binding
    reasons = [stopped(stop) for stop in chosen]
    return "; ".join(reasons[:2]) if reasons else "it has no profile that may be started"


def stopped(stop: LimitedBy) -> str:
    """One thing that was in the way."""
    if stop.kind == "fragmentation":
        facts = stop.facts
        return (
            f"{facts['resource']} has {facts['free']} free but at most {facts['largest_free']} on one node ({facts['profile']})"
        )
    if stop.kind == "room":
        facts = stop.facts
        return f"{facts['resource']} has {facts['free']} free ({facts['profile']})"
    if stop.kind == "unmeasured" and stop.facts.get("measured") == "stale":
        return f"the measurement of {stop.facts['profile']} is outdated and not counted"
    if stop.kind in ("limit", "guarantee_reserved") and "scope" not in stop.facts:
        return (
            f"a limit above it on {stop.facts['target']}" if "target" in stop.facts else "units that are kept for somebody else"
        )
    return stop_phrase(LimitedBy(kind="unable", facts=stop.facts) if stop.kind == "slo" else stop)


def wanting(row: MissingUnits | MissingLimit) -> str:
    """2 more gpu/h100 on one node; +2 gpu/h100 limit on dept-x."""
    if isinstance(row, MissingLimit):
        return f"+{row.limit:,} {row.target} limit on {row.scope or 'a scope above it'}"
    if row.units == row.on_one_node:
        return f"{row.units:,} more {row.resource} on one node"
    return f"{row.units:,} more {row.resource}, {row.on_one_node:,} on one node"


def hold_sentence(answer: Answer) -> str:
    """four stay until in-flight is under 268.8"""
    total = answer.have + answer.added
    if answer.hold_line is None:
        return "None of it would be taken back, whatever the load." if total else ""
    kept = f"{number(total, 'replica')} {_are(total)} kept"
    return f"The {kept} until fewer than {amount(answer.hold_line)} requests are in flight."


def words_of(question: Question) -> dict[str, object]:
    """The question as its words, every default filled in; numbers as JSON writes them."""
    return {**{key: plain(value) for key, value in question.given.items()}, **options_of(question)}


def options_of(question: Question) -> dict[str, object]:
    return {
        "scope": question.scope,
        "headroom": share_text(question.headroom),
        "spare": question.spare,
        "room": question.room,
        "profile": list(question.profiles),
        "stale": f"derate:{plain(question.derate)}" if question.stale == "derate" else question.stale,
        "tight": question.tight,
    }


def share_text(share: Fraction) -> str:
    return f"{plain(share * 100)}%"


def plain(value: Fraction) -> int | float:
    """A JSON number, whole where it is whole."""
    return int(value) if value.denominator == 1 else float(value)


def command(model: str, question: Question) -> str:
    """The same question on the command line; what is the default is left out."""
    parts = ["manage.py model_target", shlex.quote(model)]
    for key, value in words_of(question).items():
        parts += _option(key, value)
    return " ".join(parts)


def _option(key: str, value: object) -> list[str]:
    option = f"--{key.replace('_', '-')}"
    if value in (None, False, []) or str(value) == DEFAULTS.get(key):
        return []
    if value is True:
        return [option]
    values = value if isinstance(value, list) else [value]
    return [f"{option} {shlex.quote(str(one))}" for one in values]
