"""What a person asks of a sweep, as page, API and command give it, and the row that it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from django.core.exceptions import ValidationError

from ..bench.levels import parse_levels
from ..domain.measurement import types as measured
from ..domain.measurement.slo_text import parse_slo
from ..fleet_scrape import allowed_networks
from ..models import BenchRun, Profile, Slo
from ..slo_rows import slo_of_row
from ..sources.address import text_fault
from .tokens import FAULT, TOKEN

Where = Literal["own", "take"]

LONGEST_SECONDS: Final = 3600
LONGEST_NAME: Final = 200
MOST_TOKENS: Final = 1_000_000
USUAL_INPUT, USUAL_OUTPUT = 512, 128
NO_ADDRESS: Final = "A token is for an address outside: give that address too."

NO_NAME: Final = "A served name is what an address outside calls the model: give that address too."


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """`slo`: an SLO's name, or bounds as text; empty: the model's. `where`: a replica of its own, or one that runs is taken;
    `endpoint`: neither, but that address, with `token` as its bearer token. Lengths of None are the model's own, else 512 and
    128. `served_name`: what that address calls the model. `take_last`: the only ready replica of the model may be taken too."""

    slo: str = ""
    endpoint: str = ""
    api: str = "chat"
    levels: str = "auto"
    seconds: int = 60
    input_tokens: int | None = None
    output_tokens: int | None = None
    where: str = "own"
    same_prompt: bool = False
    take_last: bool = False
    served_name: str = ""
    token: str = field(default="", repr=False)


def run_of(profile: Profile, wish: Wish) -> BenchRun:
    """The run, not yet saved. `ValidationError` by field, with everything that is wrong."""
    faults: dict[str, str] = {}
    slo, text = _slo_rows(profile, wish.slo.strip(), faults)
    endpoint = wish.endpoint.strip()
    _check_choice(wish, faults)
    if endpoint and (fault := text_fault(endpoint, allowed_networks())):
        faults["endpoint"] = fault
    _check_token(wish, endpoint, faults)
    _check_name(wish.served_name.strip(), endpoint, faults)
    levels = _levels(wish.levels, faults)
    lengths = _lengths(profile, wish, faults)
    if not 1 <= wish.seconds <= LONGEST_SECONDS:
        faults["seconds"] = f"Seconds of a level are from 1 to {LONGEST_SECONDS}."
    if faults:
        raise ValidationError(faults)  # type: ignore[arg-type]
    return BenchRun(
        profile=profile,
        own_replica=not endpoint and wish.where == "own",
        endpoint=endpoint,
        slo=slo,
        slo_text=text,
        api=wish.api,
        levels=levels,
        seconds=wish.seconds,
        same_prompt=wish.same_prompt,
        take_last=wish.take_last,
        with_token=bool(wish.token),
        served_name=wish.served_name.strip(),
        **lengths,
    )


def slo_of(run: BenchRun) -> measured.Slo | None:
    """Bounds of its own, else those of its SLO, else of its model's; None where there are none."""
    if run.slo_text:
        return parse_slo(run.slo_text)
    row = run.slo or run.profile.model.slo
    return None if row is None else slo_of_row(row)


def _check_choice(wish: Wish, faults: dict[str, str]) -> None:
    if wish.api not in BenchRun.Api.values:
        faults["api"] = f"An API is one of {', '.join(BenchRun.Api.values)}."
    if wish.where not in {"own", "take"}:
        faults["where"] = "Where is own (a replica is started for it) or take (one that runs is taken)."
    elif wish.where == "take" and wish.endpoint.strip():
        faults["where"] = "A sweep of an address outside takes no replica: ask for one or the other."


def _check_name(name: str, endpoint: str, faults: dict[str, str]) -> None:
    if name and not endpoint:
        faults["served_name"] = NO_NAME
    elif len(name) > LONGEST_NAME or not name.isprintable():
        faults["served_name"] = f"A served name has at most {LONGEST_NAME} characters, all of them printable."


def _check_token(wish: Wish, endpoint: str, faults: dict[str, str]) -> None:
    if wish.token and not endpoint:
        faults["token"] = NO_ADDRESS
    elif wish.token and not TOKEN.fullmatch(wish.token):
        faults["token"] = FAULT


def _slo_rows(profile: Profile, asked: str, faults: dict[str, str]) -> tuple[Slo | None, str]:
    """The SLO's row and the text of bounds: one of them, the row of the model where nothing is asked."""
    row = Slo.objects.filter(name=asked).first() if asked else profile.model.slo
    if row is not None:
        if slo_of_row(row) is None:
            faults["slo"] = f"The SLO {row} bounds nothing: give it a percentile and milliseconds first."
        return row, ""
    if not asked:
        faults["slo"] = f"{profile.model} has no SLO: name one, or give bounds such as “ttft p95 500, tpot p95 50”."
        return None, ""
    try:
        parse_slo(asked)
    except ValueError as error:
        faults["slo"] = f"There is no SLO of that name, and as bounds it cannot be read: {error}"
    return None, asked


def _levels(text: str, faults: dict[str, str]) -> str:
    try:
        found = parse_levels(text)
    except ValueError as error:
        faults["levels"] = str(error)
        return text[:500]
    return "auto" if found is None else ",".join(map(str, found))


def _lengths(profile: Profile, wish: Wish, faults: dict[str, str]) -> dict[str, Any]:
    model = profile.model
    found = {
        "input_tokens": wish.input_tokens or model.input_tokens or USUAL_INPUT,
        "output_tokens": wish.output_tokens or model.output_tokens or USUAL_OUTPUT,
    }
    for name, tokens in found.items():
        if not 1 <= tokens <= MOST_TOKENS:
            faults[name] = f"Tokens of a request are from 1 to {MOST_TOKENS}."
    return found
