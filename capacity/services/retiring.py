"""Switching a model off, not past requests that nobody has looked at; and pausing the replacing of its outdated replicas."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.utils import timezone

from quotas.models import User
from quotas.services.rows import Findings, exclusive, rule_for, save

from ..briefings.retirement import arrival, gateways, is_used, use_of
from ..models import LanguageModel, Profile
from .modes import is_nobodys


@rule_for(LanguageModel)
def switch_off_what_is_used_with_a_reason(model: LanguageModel, stored: LanguageModel | None, findings: Findings) -> None:
    """People say why a model is off from now on for which requests came today. The refusal tells who asks for it."""
    off = stored is not None and stored.max_replicas != 0 and model.max_replicas == 0
    if not off or is_nobodys(model) or getattr(model, "_change_reason", None):
        return
    now = timezone.now()
    use = use_of(model, now)
    if is_used(use, now):
        told = " ".join([arrival(use, now), *gateways(use, now)])
        findings.refuse("max_replicas", f"{told} Give a reason to switch {model} off all the same.")


def model_retire(model: LanguageModel, *, actor: User | None, reason: str) -> list[str]:
    """Off: minimum and maximum 0, and the last one may go too. What runs is drained one by one by the passes, the last one
    once nobody has asked for it for `idle_seconds`; the rows stay until somebody deletes them."""
    if not reason.strip():
        raise ValidationError({"reason": "Say why it is switched off: give a reason."})
    model.min_replicas = model.max_replicas = 0
    model.scale_to_zero = True
    return save(model, actor=actor, reason=reason.strip())


def model_replacing(model: LanguageModel, paused: bool, *, actor: User | None, reason: str) -> None:
    """Paused: replicas of the model that are outdated stay, of all its profiles; else they are replaced one at a time."""
    if not reason.strip():
        raise ValidationError({"reason": "Say why: give a reason."})
    with exclusive():
        for profile in Profile.objects.filter(model=model):
            profile.replacing_paused = paused
            save(profile, actor=actor, reason=reason.strip())
