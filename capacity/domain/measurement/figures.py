"""Figures of a sweep as they stand in a sentence."""

from __future__ import annotations


def ms(value: float) -> str:
    """`1,001.9 ms`, `9.81 ms`, `500 ms`."""
    return f"{plain(value)} ms"


def over(value: float, bound: float) -> str:
    """With so many digits that the value is not rounded to the bound it is over."""
    text = plain(value) if plain(value) != plain(bound) else f"{value:,.9f}".rstrip("0")
    return f"{text} ms is over {ms(bound)}"


def plain(value: float) -> str:
    text = f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"
    return text.rstrip("0").rstrip(".")


def share(value: float) -> str:
    return f"{100 * value:.3g} %"
