"""A measurement as a document of its own, `llmgw.measurement/1`: `bench.formats.own` reads it back."""

from __future__ import annotations

from typing import Any

from . import clock
from .bench.formats.own import FORMAT
from .domain.measurement.contradiction import MEASURED_OF, run_facts
from .fingerprints import measuring_print, run_of
from .models import Measurement


def measurement_document(measurement: Measurement) -> dict[str, Any]:
    """With all stages of its sweep, and the profile's facts as `run` where it was measured of what the profile is now. What is
    not known is null."""
    profile = measurement.profile
    return {
        "format": FORMAT,
        "model": profile.model.name,
        "profile": profile.name,
        "resource": profile.resource,
        "units": profile.units,
        "hosts": profile.hosts,
        "run": measured_of(measurement),
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


def measured_of(measurement: Measurement) -> dict[str, str] | None:
    """Class, units, hosts, template and parameters; None where the profile is another by now, or nobody knows what it was."""
    profile = measurement.profile
    told = hints_of(measurement.evidence)
    if set(MEASURED_OF.values()) <= set(told):
        return {name: told[hint] for name, hint in MEASURED_OF.items()}
    is_of_now = measurement.fingerprint == measuring_print(profile, measurement.slo)
    return run_facts(run_of(profile, profile.model.name)) if is_of_now else None


def hints_of(evidence: Any) -> dict[str, str]:
    """What the files said besides, as texts; hand-written evidence may hold anything."""
    setting = evidence.get("setting") if isinstance(evidence, dict) else None
    hints = setting.get("hints") if isinstance(setting, dict) else None
    return {str(name): str(value) for name, value in hints.items()} if isinstance(hints, dict) else {}
