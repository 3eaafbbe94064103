"""A measurement as a document of its own, `llmgw.measurement/1`: `bench.formats.own` reads it back."""

from __future__ import annotations

from typing import Any

from . import clock
from .bench.formats.own import FORMAT
from .models import Measurement


def measurement_document(measurement: Measurement) -> dict[str, Any]:
    """With all stages of its sweep. What is not known is null."""
    profile = measurement.profile
    return {
        "format": FORMAT,
        "model": profile.model.name,
        "profile": profile.name,
        "resource": profile.resource,
        "units": profile.units,
        "hosts": profile.hosts,
        "max_concurrency": measurement.max_concurrency,
        "tokens_per_second": float(measurement.tokens_per_second),
        "kind": measurement.kind or None,
        "status": measurement.status,
        "stale_why": measurement.stale_why or None,
        "slo": measurement.slo.name if measurement.slo else None,
        "measured_at": clock.iso(measurement.measured_at),
        "note": measurement.note or None,
        "evidence": measurement.evidence,
    }
