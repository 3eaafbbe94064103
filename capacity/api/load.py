"""What a gateway pushes, brought onto the names of the pool."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from capacity.api.access import canonical_names
from capacity.models import LanguageModel, Replica
from capacity.sources.gateway import ModelPush, Push
from quotas.models import Pool

MOST_REMEMBERED = 20
MOST_ASKED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """`push`: under the models' own names, without what the pool does not have. `ignored`: the names left out, sorted."""

    push: Push
    ignored: list[str]

    @property
    def taken(self) -> dict[str, int]:
        """How many of each kind count."""
        return {"replicas": len(self.push.replicas), "models": len(self.push.models)}


def known_only(pool: Pool, push: Push) -> Known:
    """What counts of a push. Replicas that are gone are no fault of a gateway, which hears of their end a little later."""
    present = set(Replica.objects.filter(pool=pool, gone_at=None).values_list("name", flat=True)) if push.replicas else set()
    names = canonical_names(LanguageModel.objects.filter(pool=pool)) if push.models else {}
    replicas = {name: count for name, count in push.replicas.items() if name in present}
    foreign = [*sorted(push.models.keys() - names.keys()), *_never_had(pool, push.replicas.keys() - present)]
    return Known(
        push=replace(push, replicas=replicas, models=_by_model(push.models, names), unknown=tuple(foreign[:MOST_REMEMBERED])),
        ignored=sorted({*(push.replicas.keys() - present), *(push.models.keys() - names.keys())}),
    )


def _never_had(pool: Pool, names: Set[str]) -> list[str]:
    """Of these replicas those that were never of the pool: another pool's, or made up."""
    asked = sorted(names)[:MOST_ASKED]
    had = set(Replica.objects.filter(pool=pool, name__in=asked).values_list("name", flat=True)) if asked else set()
    return [name for name in asked if name not in had]


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
