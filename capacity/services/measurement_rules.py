"""Rules of measurements: what was measured is history, and what a person typed is assumed."""

from __future__ import annotations

from django.utils import timezone

from quotas.services.rows import Findings, rule_for

from ..fingerprints import present_print
from ..models import Measurement


@rule_for(Measurement)
def keep_the_profile_of_the_evidence(measurement: Measurement, stored: Measurement | None, findings: Findings) -> None:
    if stored is not None and measurement.profile_id != stored.profile_id:
        findings.refuse("profile", f"This was measured on {stored.profile}; write another measurement for another profile.")


@rule_for(Measurement)
def typed_in_is_assumed(measurement: Measurement, stored: Measurement | None, findings: Findings) -> None:
    """Without a sweep's stages, or with other numbers than they gave, it is good for adding and never for removing."""
    if has_stages(measurement) and not _numbers_retyped(measurement, stored):
        return
    if measurement.status != Measurement.Status.ASSUMED:
        findings.warn("Typed in, not measured: stored as assumed. It lets replicas be added and never lets one be removed.")
    measurement.status = Measurement.Status.ASSUMED


@rule_for(Measurement)
def accept_with_a_reason(measurement: Measurement, stored: Measurement | None, findings: Findings) -> None:
    accepted = (
        stored is not None and stored.status == Measurement.Status.STALE and measurement.status == Measurement.Status.CURRENT
    )
    if accepted and not getattr(measurement, "_change_reason", None):
        findings.refuse("status", "Say why it is good for the profile as it is: give a reason.")


@rule_for(Measurement)
def keep_what_it_was_measured_of(measurement: Measurement, stored: Measurement | None, findings: Findings) -> None:
    """A sweep that comes in, or is accepted, stands for the profile as it is now."""
    if measurement.status == Measurement.Status.STALE:
        if stored is None or stored.status != Measurement.Status.STALE:
            measurement.stale_cause = measurement.stale_cause or Measurement.Cause.PERSON
        return
    measurement.stale_cause = measurement.stale_why = ""
    measurement.in_force_since = measurement.in_force_since or timezone.now()
    was_stale = stored is not None and stored.status == Measurement.Status.STALE
    is_new = stored is None and not measurement.fingerprint
    if measurement.status == Measurement.Status.CURRENT and (was_stale or is_new):
        measurement.fingerprint = present_print(measurement.profile)


def has_stages(measurement: Measurement) -> bool:
    evidence = measurement.evidence
    return isinstance(evidence, dict) and isinstance(evidence.get("stages"), list) and len(evidence["stages"]) > 0


def _numbers_retyped(measurement: Measurement, stored: Measurement | None) -> bool:
    if stored is None or measurement.evidence != stored.evidence:
        return False
    numbers = ("max_concurrency", "tokens_per_second")
    return any(getattr(measurement, name) != getattr(stored, name) for name in numbers)
