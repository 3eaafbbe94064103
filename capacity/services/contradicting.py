"""A measurement that live engines contradict: outdated at once, and removals of its model rest."""

from __future__ import annotations

from datetime import datetime

from quotas.services import exclusive, rows

from ..domain.probation import REST
from ..models import LanguageModel, Measurement

REASON = "the self-check: live latencies contradict it"


def contradicted(measurement: Measurement, why: str, now: datetime) -> bool:
    """False where somebody changed it meanwhile: it is judged again."""
    with exclusive():
        stored = Measurement.objects.select_related("profile__model").get(pk=measurement.pk)
        numbers = (stored.status, stored.max_concurrency) == (Measurement.Status.CURRENT, measurement.max_concurrency)
        if not numbers:
            return False
        stored.status, stored.stale_cause, stored.stale_why = Measurement.Status.STALE, Measurement.Cause.SELF_CHECK, why
        rows.write(stored, actor=None, reason=REASON)
        model = stored.profile.model
        until = max(filter(None, (model.removals_rest_until, now + REST)))
        LanguageModel.objects.filter(pk=model.pk).update(removals_rest_until=until)
    return True
