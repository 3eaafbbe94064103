"""How many units the floors of models take."""

from __future__ import annotations

from collections.abc import Iterable

from ..models import LanguageModel, Profile


def floor_units(models: Iterable[LanguageModel], resource: str) -> int:
    """Units of a class that the models' `min_replicas` take, each by its active profile of highest priority."""
    floors = {model.pk: floor(model) for model in models if model.pk is not None}
    first: dict[int, Profile] = {}
    profiles = Profile.objects.filter(model_id__in=floors, state=Profile.State.ACTIVE).order_by("-priority", "name")
    for profile in profiles:
        first.setdefault(profile.model_id, profile)
    return sum(floors[key] * p.units * p.hosts for key, p in first.items() if p.resource == resource)


def floor(model: LanguageModel) -> int:
    """`min_replicas`, where 0 without scale to zero keeps one, and a maximum of 0 is off."""
    if model.max_replicas == 0:
        return 0
    return model.min_replicas if model.min_replicas > 0 or model.scale_to_zero else 1
