"""Figures of a sweep as they stand in a sentence."""

from __future__ import annotations


def ms(value: float) -> str:
    """`1,001.9 ms`, `9.8 ms`, `500 ms`: never rounded to the bound it is over."""
    return f"{plain(value)} ms"


def plain(value: float) -> str:
    text = f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"
    return text.rstrip("0").rstrip(".")


def share(value: float) -> str:
    return f"{100 * value:.3g} %"
