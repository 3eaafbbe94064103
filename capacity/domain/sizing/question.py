"""What is asked of a sizing: a demand, exactly one, and the options. The same words on the command line, in URLs and in JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, cast

Unit = Literal["tokens_per_second", "in_flight"]
RoomUse = Literal["now", "reclaim", "total"]
StaleUse = Literal["exclude", "derate", "use"]

ROOMS: Final[tuple[RoomUse, ...]] = ("now", "reclaim", "total")
UNITS: Final[Mapping[Unit, str]] = {"tokens_per_second": "output tokens/s", "in_flight": "requests in flight"}
LARGEST: Final = 10**12
MOST_SPARE: Final = 1000
LEADS: Final = ("tokens_per_second", "requests_per_second", "in_flight", "users")
"""The words that say a demand; exactly one of them is given."""
COMPANIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "tokens_per_second": (),
    "requests_per_second": ("output_tokens",),
    "in_flight": (),
    "users": ("requests_per_user_day", "hours", "peak", "output_tokens"),
}
DEFAULTS: Final[Mapping[str, str]] = {
    "hours": "8",
    "peak": "2",
    "headroom": "0%",
    "spare": "0",
    "room": "now",
    "stale": "exclude",
}
NUMBERS: Final = (*LEADS, "output_tokens", "requests_per_user_day", "hours", "peak")
OPTIONS: Final = ("scope", "headroom", "spare", "room", "profile", "stale", "tight")
KEYS: Final = (*NUMBERS, *OPTIONS)
_NUMBER: Final = re.compile(r"\d{1,13}(\.\d{1,12})?", re.ASCII)


class WrongQuestion(ValueError):
    """The question cannot be answered as it is put: the key to blame and one sentence."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key
        self.sentence = sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`given`: the demand as it was said, defaults filled in. `amount`: in `unit` (output tokens a second, or requests in
    flight). `requests_per_second` and `output_tokens` where the demand says them. `headroom` is a share, 0 for none; `derate`
    is 1 unless `stale` is derate; `profiles` empty: all."""

    given: Mapping[str, Fraction]
    unit: Unit
    amount: Fraction
    requests_per_second: Fraction | None = None
    output_tokens: Fraction | None = None
    scope: str | None = None
    headroom: Fraction = Fraction(0)
    spare: int = 0
    room: RoomUse = "now"
    profiles: tuple[str, ...] = ()
    stale: StaleUse = "exclude"
    derate: Fraction = Fraction(1)
    tight: bool = False

    @property
    def wanted(self) -> Fraction:
        """The demand to cover, headroom included."""
        return self.amount * (1 + self.headroom)


def question_of(words: Mapping[str, object]) -> Question:
    """Read a question from its words; texts, numbers and (for `profile`) lists are taken, None and "" stand for absent.

    Raises `WrongQuestion` for the first thing that is wrong."""
    said = {key: value for key, value in words.items() if value not in (None, "", [], ())}
    for key in said:
        if key not in KEYS:
            raise WrongQuestion(key, f"{key} is no part of the question: {', '.join(KEYS)}.")
    given = _demand(said)
    unit, amount, rate = _amount(given)
    stale, derate = _stale(said)
    return Question(
        given=given,
        unit=unit,
        amount=amount,
        requests_per_second=rate,
        output_tokens=given.get("output_tokens"),
        scope=_text(said, "scope"),
        headroom=_headroom(said),
        spare=_spare(said),
        room=_room(said),
        profiles=_profiles(said),
        stale=stale,
        derate=derate,
        tight=_flag(said, "tight"),
    )


def _demand(said: Mapping[str, object]) -> dict[str, Fraction]:
    leads = [key for key in LEADS if key in said]
    if len(leads) != 1:
        found = f"; these were: {', '.join(leads)}" if leads else ""
        raise WrongQuestion("demand", f"Say the demand with exactly one of {', '.join(LEADS)}{found}.")
    companions = COMPANIONS[leads[0]]
    for key in NUMBERS:
        if key in said and key not in (*leads, *companions):
            raise WrongQuestion(key, f"{key} says nothing beside {leads[0]}.")
    for key in companions:
        if key not in said and key not in DEFAULTS:
            raise WrongQuestion(key, f"{leads[0]} also needs {key}.")
    given = {key: _positive(key, said.get(key, DEFAULTS.get(key))) for key in (*leads, *companions)}
    if given.get("hours", 1) > 24:
        raise WrongQuestion("hours", "hours: a day has 24.")
    return given


def _amount(given: Mapping[str, Fraction]) -> tuple[Unit, Fraction, Fraction | None]:
    """The unit that is sized in, the amount in it, and requests a second where they are known."""
    if "in_flight" in given:
        return "in_flight", given["in_flight"], None
    if "tokens_per_second" in given:
        return "tokens_per_second", given["tokens_per_second"], None
    rate = given.get("requests_per_second") or _peak_rate(given)
    return "tokens_per_second", _in_range("requests_per_second", rate * given["output_tokens"]), rate


def _peak_rate(given: Mapping[str, Fraction]) -> Fraction:
    """Users × requests a day, spread over the hours of a day in which they come, times the peak."""
    return given["users"] * given["requests_per_user_day"] * given["peak"] / (given["hours"] * 3600)


def _positive(key: str, value: object) -> Fraction:
    text = str(value).strip()
    if isinstance(value, bool) or not _NUMBER.fullmatch(text):
        raise WrongQuestion(key, f"{key}: {_shown(value)} is not a number over 0, such as 8000 or 12.5.")
    number = Fraction(text)
    if number == 0:
        raise WrongQuestion(key, f"{key} must be more than 0.")
    return _in_range(key, number)


def _in_range(key: str, number: Fraction) -> Fraction:
    if number > LARGEST:
        raise WrongQuestion(key, f"{key} is more than {LARGEST}.")
    return number


def _headroom(said: Mapping[str, object]) -> Fraction:
    """20% and 0.2 are the same."""
    value = said.get("headroom", DEFAULTS["headroom"])
    text = str(value).strip()
    number = text.removesuffix("%").strip()
    if isinstance(value, bool) or not _NUMBER.fullmatch(number):
        raise WrongQuestion("headroom", f"headroom: {_shown(value)} is not a share such as 20% or 0.2.")
    share = Fraction(number) / 100 if text.endswith("%") else Fraction(number)
    if share > 10:
        raise WrongQuestion("headroom", "headroom is at most 1000%; write 20% or 0.2.")
    return share


def _spare(said: Mapping[str, object]) -> int:
    value = said.get("spare", DEFAULTS["spare"])
    text = str(value).strip()
    if isinstance(value, bool) or not re.fullmatch(r"\d{1,4}", text, re.ASCII) or int(text) > MOST_SPARE:
        raise WrongQuestion("spare", f"spare: {_shown(value)} is not a whole number of replicas from 0 to {MOST_SPARE}.")
    return int(text)


def _room(said: Mapping[str, object]) -> RoomUse:
    value = str(said.get("room", DEFAULTS["room"])).strip()
    found = next((room for room in ROOMS if room == value), None)
    if found is None:
        raise WrongQuestion("room", f"room is one of {', '.join(ROOMS)}, not {_shown(value)}.")
    return found


def _stale(said: Mapping[str, object]) -> tuple[StaleUse, Fraction]:
    value = str(said.get("stale", DEFAULTS["stale"])).strip()
    if value in ("exclude", "use"):
        return cast(StaleUse, value), Fraction(1)
    kind, _, factor = value.partition(":")
    if kind == "derate" and _NUMBER.fullmatch(factor) and 0 < Fraction(factor) <= 1:
        return "derate", Fraction(factor)
    raise WrongQuestion("stale", f"stale is exclude, use or derate:FACTOR such as derate:0.8, not {_shown(value)}.")


def _profiles(said: Mapping[str, object]) -> tuple[str, ...]:
    value = said.get("profile", ())
    names: Sequence[object] = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else [None]
    if not all(isinstance(name, str) for name in names):
        raise WrongQuestion("profile", "profile is the name of a profile, or a list of them.")
    return tuple(dict.fromkeys(str(name) for name in names if name))


def _flag(said: Mapping[str, object], key: str) -> bool:
    value = said.get(key, False)
    text = str(value).strip().lower()
    if text not in ("true", "1", "on", "yes", "false", "0", "off", "no"):
        raise WrongQuestion(key, f"{key} is true or false, not {_shown(value)}.")
    return text in ("true", "1", "on", "yes")


def _text(said: Mapping[str, object], key: str) -> str | None:
    value = said.get(key)
    if value is not None and not isinstance(value, str):
        raise WrongQuestion(key, f"{key} is a name.")
    return value


def _shown(value: object) -> str:
    """What was given, short enough for a sentence."""
    text = repr(value) if not isinstance(value, str) else f"“{value}”"
    return text if len(text) <= 60 else f"{text[:60]}…"
