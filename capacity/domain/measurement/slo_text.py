"""An SLO as one line of text, the form that commands, forms and the evidence use: `ttft p95 500, tpot p95 50, errors 2%`.

`itl` is read as `tpot`: the mean gap between tokens of a request, which several tools call inter-token latency. The gap between
chunks, vLLM's and SGLang's `itl`, is never judged.
"""

from __future__ import annotations

import math
import re
from typing import Final, cast

from .types import DEFAULT_ERROR_SHARE, LATENCIES, Bound, Latency, Slo

EXAMPLE: Final = "'ttft p95 500, tpot p95 50'"
LONGEST: Final = 200
MOST_MS: Final = 10**9
_NAMES: Final = {"ttft": "ttft", "tpot": "tpot", "itl": "tpot", "e2e": "e2e"}
_BOUND: Final = re.compile(
    r"(?P<latency>[a-z0-9]+) +p(?P<percentile>[0-9]{1,3})(?: *(?:≤|<=) *| +)(?P<ms>[0-9]+(?:\.[0-9]+)?) *(?:ms)?"
)
_ERRORS: Final = re.compile(r"errors *(?:≤|<=)? *(?P<share>[0-9]+(?:\.[0-9]+)?) *%")


def parse_slo(text: str) -> Slo:
    """Bounds in ms with commas between, and at most one share of errors in per cent. ValueError with one sentence."""
    if len(text) > LONGEST:
        raise ValueError(f"An SLO has at most {LONGEST} characters, such as {EXAMPLE}.")
    parts = [part.strip().lower() for part in text.split(",") if part.strip()]
    shares = [share for part in parts if (share := _share(part)) is not None]
    bounds = [_bound(part) for part in parts if _share(part) is None]
    _check(bounds, shares)
    ordered = sorted(bounds, key=lambda bound: LATENCIES.index(bound.latency))
    return Slo(bounds=tuple(ordered), max_error_share=shares[0] if shares else DEFAULT_ERROR_SHARE)


def slo_text(slo: Slo) -> str:
    """The text that `parse_slo` reads as the same SLO. The share of errors is named where it is not the usual one."""
    parts = [bound_text(bound) for bound in sorted(slo.bounds, key=lambda bound: LATENCIES.index(bound.latency))]
    if slo.max_error_share != DEFAULT_ERROR_SHARE:
        parts.append(f"errors {_plain(100 * slo.max_error_share)}%")
    return ", ".join(parts)


def bound_text(bound: Bound) -> str:
    return f"{bound.latency} p{bound.percentile} {_plain(bound.ms)}"


def _check(bounds: list[Bound], shares: list[float]) -> None:
    if not bounds:
        raise ValueError(f"An SLO names at least one bound, such as {EXAMPLE}.")
    if len(shares) > 1:
        raise ValueError("An SLO names the share of errors once.")
    for latency in LATENCIES:
        if sum(bound.latency == latency for bound in bounds) > 1:
            raise ValueError(f"An SLO has one bound for {latency}, not several.")


def _bound(part: str) -> Bound:
    found = _BOUND.fullmatch(part)
    if found is None or found["latency"] not in _NAMES:
        raise ValueError(f"{part[:60]!r} is no bound: name ttft, tpot or e2e, a percentile and milliseconds, such as {EXAMPLE}.")
    percentile, ms = int(found["percentile"]), float(found["ms"])
    if not 1 <= percentile <= 99:
        raise ValueError(f"The percentile in {part[:60]!r} is from p1 to p99.")
    if not 0 < ms <= MOST_MS:
        raise ValueError(f"The bound in {part[:60]!r} is above 0 and at most {MOST_MS} ms.")
    return Bound(latency=cast(Latency, _NAMES[found["latency"]]), percentile=percentile, ms=ms)


def _share(part: str) -> float | None:
    found = _ERRORS.fullmatch(part)
    if found is None:
        return None
    share = float(found["share"]) / 100
    if not (math.isfinite(share) and 0 <= share <= 1):
        raise ValueError("The share of errors in an SLO is from 0 to 100 %.")
    return share


def _plain(value: float) -> str:
    """Without an exponent and without zeros that say nothing; short enough to be read back as the same number."""
    rounded = round(value, 9)
    return f"{rounded:.9f}".rstrip("0").rstrip(".")
