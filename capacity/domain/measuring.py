"""Replicas for sweeps: which are started for one, after everybody else was served, and which go back when it is over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from capacity.domain.load import Tally
from capacity.domain.phrases import stop_phrase
from capacity.domain.placement import Rating
from capacity.domain.reasons import REASONS
from capacity.domain.types import Action, LimitedBy, Replica, Waiting


def asked(order: Iterable[Rating]) -> list[Rating]:
    """The profiles of which a sweep waits for a replica, by name."""
    return sorted((rating for rating in order if rating.profile.measure), key=lambda rating: rating.name)


def given_back(counted: Tally, replicas: Sequence[Replica]) -> list[Action]:
    """Those that were started for a sweep that is over, of a model whose replicas no plan takes back: each is drained.

    Done in every mode but `auto`: a person asked for the sweep, and without it nothing would run there."""
    if counted.model.mode == "auto":
        return []
    over = (r for r in replicas if r.give_back and not r.under_test and r.removable and r.state != "draining")
    return [
        Action(
            op="cancel" if replica.state == "starting" else "drain",
            model=counted.model.name,
            reason="measure",
            profile=replica.profile,
            replica=replica.name,
        )
        for replica in sorted(over, key=lambda replica: replica.name)
    ]


def waiting(model: str, profile: str, stops: Sequence[LimitedBy], reason: str) -> Waiting:
    """What a sweep without a replica is told: the reason's sentence, then what was in the way with its numbers."""
    why = f"No replica could be started for it. {REASONS[reason].sentence}"
    if stops:
        why += f" In the way: {'; '.join(stop_phrase(stop) for stop in stops)}."
    return Waiting(model=model, profile=profile, why=why)
