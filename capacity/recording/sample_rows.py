"""What a pass saw of each model, as one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..domain.types import Decision as PlannedDecision
from ..domain.types import Plan, Replica
from ..models import Sample
from ..samples import UNDER_TEST, pack
from ..snapshot import Built
from . import bulk

if TYPE_CHECKING:
    from .record import Turn


def write_samples(turn: Turn, built: Built, plan: Plan) -> None:
    """One row a model: totals, and a packed array of its replicas. Nothing where the inventory is unknown: a gap."""
    if built.observed is None:
        return
    measured = {(m.model, m.profile): m.max_concurrency for m in built.snapshot.measurements or ()}
    by_model: dict[str, list[Any]] = {name: [] for name in built.rows.models}
    for replica in built.snapshot.replicas or ():
        by_model[replica.model].append(replica)
    states = {name: Counter(_state(replica) for replica in replicas) for name, replicas in by_model.items()}
    held = {model.name: model.held_requests for model in built.snapshot.models}
    samples = [
        sample(turn, built, planned, by_model[planned.model], states[planned.model], measured, held[planned.model])
        for planned in plan.decisions
    ]
    bulk.insert(samples)


def sample(
    turn: Turn,
    built: Built,
    planned: PlannedDecision,
    replicas: list[Any],
    states: Counter[str],
    measured: Mapping[Any, int],
    held: int | None,
) -> Sample:
    row = built.rows.models[planned.model]
    ids = built.rows.replicas
    good = timedelta(seconds=built.snapshot.settings.stale_after_seconds)
    packed = pack(
        (
            ids[r.name].id,
            None if r.under_test or (r.sampled_at is not None and turn.now - r.sampled_at > good) else r.in_flight,
            measured.get((r.model, r.profile)),
            built.rates.get(r.name),
            _state(r),
        )
        for r in replicas
        if r.name in ids
    )
    rates = [built.rates[r.name] for r in replicas if r.name in built.rates]
    return Sample(
        model_id=row.id,
        at=turn.now,
        demand_low=planned.demand_low,
        demand_high=planned.demand_high,
        held_requests=held,
        capacity_ready=planned.capacity_ready or 0,
        capacity_starting=planned.capacity_starting or 0,
        rest_capacity=planned.rest_capacity,
        ready=states["ready"],
        unready=states["unready"],
        starting=states["starting"],
        draining=states["draining"],
        wanted=planned.wanted,
        tokens_per_second=sum(rates) if rates else None,
        replicas=packed,
    )


def _state(replica: Replica) -> str:
    return UNDER_TEST if replica.under_test else replica.state
