"""Letting a model act: what its operator must say where little is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.utils import timezone

from quotas.models import User
from quotas.services.rows import Findings, exclusive, rule_for, sign

from ..briefings.scorecards import recorded
from ..domain.probation import read
from ..domain.scorecard import ENOUGH, WINDOW
from ..models import LanguageModel, Measurement, Profile

FREEDOM: Final = {"paused": 0, "advise": 0, "add_only": 1, "auto": 2}
"""How much a mode lets llmgw do."""


@rule_for(LanguageModel)
def let_it_act_on_evidence(model: LanguageModel, stored: LanguageModel | None, findings: Findings) -> None:
    """People give a reason where a model is to act on little; what the product itself sets up (nobody's edit) needs none."""
    freer = FREEDOM.get(model.mode, 0) > (FREEDOM.get(stored.mode, 0) if stored else 0)
    if not freer or is_nobodys(model) or getattr(model, "_change_reason", None):
        return
    found = doubts(model, timezone.now())
    if found:
        findings.refuse("mode", f"{' '.join(found)} Give a reason to switch it to {model.mode} all the same.")


def end_rest(model: LanguageModel, *, actor: User | None, reason: str, now: datetime) -> None:
    """Lets removals of a model go on before its rest is over. Refuses where none rest, and without a reason."""
    if not reason.strip():
        raise ValidationError({"reason": "Say why removals may go on: give a reason."})
    with exclusive():
        stored = LanguageModel.objects.get(pk=model.pk)
        if stored.removals_rest_until is None or stored.removals_rest_until <= now:
            raise ValidationError({NON_FIELD_ERRORS: f"No removals of {model} rest."})
        stored.removals_rest_until = None
        sign(stored, actor, reason.strip())
        stored.save(update_fields=["removals_rest_until"])
    model.removals_rest_until = None


def kept_while_resting(model: LanguageModel) -> int:
    """The replicas that a rest of removals keeps at least."""
    watch = read(model.probation)
    floor = max(model.min_replicas, watch.floor if watch and watch.result == "failed" else 0)
    return floor if model.max_replicas is None else min(floor, model.max_replicas)


def is_nobodys(row: Any) -> bool:
    return getattr(row, "_history_user", row) is None


def doubts(model: LanguageModel, now: datetime, covered: timedelta | None = None) -> list[str]:
    """Why a reason is asked for before the model may act; empty where none is. `covered`: how much is recorded, where known."""
    found = []
    days = recorded(model, now) if covered is None else covered
    if days < ENOUGH:
        found.append(f"Its load is recorded for {days / WINDOW * WINDOW.days:.1f} of the last 14 days, fewer than {ENOUGH.days}.")
    if not any(is_located(measurement) for _, measurement in in_use(model)):
        found.append("None of its profiles has a current measurement whose limit was located.")
    return found


def in_use(model: LanguageModel) -> Sequence[tuple[Profile, Measurement | None]]:
    """The model's profiles that are not retired, by name, each with the measurement in use."""
    if model.pk is None:
        return []
    profiles = Profile.objects.filter(model=model).exclude(state=Profile.State.RETIRE).select_related("model").order_by("name")
    used: dict[int, Measurement] = {}
    for measurement in Measurement.objects.filter(profile__model=model).best_first():
        used.setdefault(measurement.profile_id, measurement)
    return [(profile, used.get(profile.pk)) for profile in profiles]


def is_located(measurement: Measurement | None) -> bool:
    """Current, and its sweep went on until the SLO failed. Evidence that does not say so counts as not located."""
    if measurement is None:
        return False
    return (measurement.status, measurement.kind) == (Measurement.Status.CURRENT, Measurement.Kind.LOCATED)
