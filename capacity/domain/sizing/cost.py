"""What a plan costs an hour, and a million output tokens of it, where prices are set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from capacity.domain.phrases import names
from capacity.domain.sizing.types import Answer

TOKENS = 10**6
SECONDS = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPrice:
    """What one unit of a class costs an hour."""

    per_unit_hour: Decimal
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """An hour of what is added and of the whole fleet, and a million output tokens at its measured concurrency (None where
    that is not known)."""

    currency: str
    added_per_hour: Fraction
    whole_per_hour: Fraction
    per_million_output_tokens: Fraction | None


def cost_of(answer: Answer, prices: Mapping[str, UnitPrice]) -> tuple[Cost | None, str]:
    """The cost, or None and one sentence that says which price is missing. No plan: None and nothing."""
    classes = sorted({row.resource for row in answer.rows})
    if not classes:
        return None, ""
    lacking = [resource for resource in classes if resource not in prices]
    if lacking:
        return None, f"What it costs is not known: no price is set for {names(lacking)}."
    currencies = sorted({prices[resource].currency for resource in classes})
    if len(currencies) > 1:
        return None, f"What it costs is not added up: the prices of {names(classes)} are in {names(currencies)}."
    return _cost(answer, prices, currencies[0]), ""


def _cost(answer: Answer, prices: Mapping[str, UnitPrice], currency: str) -> Cost:
    added = whole = Fraction(0)
    for row in answer.rows:
        each = Fraction(prices[row.resource].per_unit_hour) * row.units_each
        added += each * row.add
        whole += each * (row.add + row.have)
    tokens = answer.fleet_tokens
    per_million = whole / (tokens * SECONDS) * TOKENS if tokens else None
    return Cost(currency=currency, added_per_hour=added, whole_per_hour=whole, per_million_output_tokens=per_million)


def money(value: Fraction) -> str:
    """Two digits after the point, or as many as show three of a small sum; 1,234.50, 0.0023."""
    digits = 2
    while value and digits < 8 and value * 10**digits < 100 and value < 1:
        digits += 1
    return f"{Decimal(value.numerator) / Decimal(value.denominator):,.{digits}f}"
