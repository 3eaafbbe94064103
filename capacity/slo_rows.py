"""SLOs as rows and as values."""

from __future__ import annotations

from .domain.measurement.slo_text import parse_slo
from .domain.measurement.types import LATENCIES, Bound, Slo
from .models import Slo as SloRow


def slo_of_row(row: SloRow) -> Slo | None:
    """None where the row names no bound: nothing can be judged by it."""
    bounds = tuple(
        Bound(latency=latency, percentile=percentile, ms=float(ms))
        for latency in LATENCIES
        if (percentile := getattr(row, f"{latency}_percentile")) is not None and (ms := getattr(row, f"{latency}_ms")) is not None
    )
    return Slo(bounds=bounds, max_error_share=float(row.max_error_share)) if bounds else None


def row_of_slo(slo: Slo) -> SloRow | None:
    """The first row by name that has the same bounds and share of errors."""
    return next((row for row in SloRow.objects.order_by("name") if slo_of_row(row) == slo), None)


def slo_named(text: str) -> Slo | None:
    """An SLO by its name, or as text; None where none is given. ValueError with one sentence."""
    if not text.strip():
        return None
    row = _row(text.strip())
    if row is None:
        return _as_text(text)
    found = slo_of_row(row)
    if found is None:
        raise ValueError(f"The SLO “{row.name}” has no bound, so nothing can be judged by it.")
    return found


def _row(name: str) -> SloRow | None:
    """Text with bounds needs no database: a file can be read where there is no installation."""
    try:
        parse_slo(name)
    except ValueError:
        return SloRow.objects.filter(name=name).first()
    return None


def _as_text(text: str) -> Slo:
    try:
        return parse_slo(text)
    except ValueError as why:
        raise ValueError(f"There is no SLO of that name, and as text: {why}") from None
