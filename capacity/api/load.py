"""What a gateway pushes, brought onto the names of the pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from capacity.api.access import canonical_names
from capacity.models import LanguageModel, Replica
from capacity.sources.gateway import ModelPush, Push
from quotas.models import Pool


def known_only(pool: Pool, push: Push) -> tuple[Push, list[str]]:
    """The push under the models' own names, without what the pool does not have; and the names left out, sorted."""
    present = set(Replica.objects.filter(pool=pool, gone_at=None).values_list("name", flat=True)) if push.replicas else set()
    names = canonical_names(LanguageModel.objects.filter(pool=pool)) if push.models else {}
    ignored = {*(push.replicas.keys() - present), *(push.models.keys() - names.keys())}
    replicas = {name: count for name, count in push.replicas.items() if name in present}
    return replace(push, replicas=replicas, models=_by_model(push.models, names)), sorted(ignored)


def _by_model(pushed: Mapping[str, ModelPush], names: Mapping[str, str]) -> dict[str, ModelPush]:
    found: dict[str, ModelPush] = {}
    for name, said in pushed.items():
        if name in names:
            found[names[name]] = _together(found.get(names[name]), said)
    return found


def _together(one: ModelPush | None, other: ModelPush) -> ModelPush:
    """What was said of a model under two of its names: requests add up, the later arrival counts."""
    if one is None:
        return other
    held = [said.held for said in (one, other) if said.held is not None]
    arrivals = [said.last_arrival_at for said in (one, other) if said.last_arrival_at is not None]
    return ModelPush(held=sum(held) if held else None, last_arrival_at=max(arrivals, default=None))
