"""SLOs as rows and as values."""

from __future__ import annotations

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
