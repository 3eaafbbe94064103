"""What becomes of a model that needs nothing: the rules of Remove, one after another; the first that fails is the reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from capacity.domain.clock import passed, reached
from capacity.domain.load import Tally
from capacity.domain.types import Replica, Settings
from capacity.domain.victims import Victims, refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`remove` names the replica that goes; `replace` the one that goes once another runs elsewhere; `hold` may name the
    candidate that was refused."""

    outcome: Literal["hold", "remove", "replace"]
    reason: str
    replica: Replica | None = None


def _hold(reason: str, replica: Replica | None = None) -> Verdict:
    return Verdict(outcome="hold", reason=reason, replica=replica)


def _remove(reason: str, replica: Replica | None) -> Verdict:
    return _hold("not_removable") if replica is None else Verdict(outcome="remove", reason=reason, replica=replica)


def removal(found: Victims, settings: Settings) -> Verdict:
    """The verdict on a model without a need, housekeeping of stuck replicas aside."""
    tally = found.tally
    if tally.demand_low > tally.capacity_ready:
        return _hold("starting_covers")
    if not tally.held and tally.model.held_requests == 0:
        return _hold("steady")
    if not tally.loads_known or tally.peak is None:
        return _hold("metrics_unknown")
    if tally.draining:
        return _hold("draining")
    if _above_max(tally):
        return _remove("above_max", found.first)
    if len(tally.starting) > 1 or any(not replica.removable for replica in tally.starting):
        return _hold("starting_covers")
    if found.leaving:
        return _evacuation(found, settings)
    if tally.live <= _stays(tally):
        return _last(found, settings)
    return _saving(found)


def _stays(tally: Tally) -> int:
    return max(tally.model.min_replicas, 1)


def _above_max(tally: Tally) -> bool:
    most = tally.model.max_replicas
    return most is not None and tally.held > most and tally.live > _stays(tally)


def _evacuation(found: Victims, settings: Settings) -> Verdict:
    """A replica that must leave is drained where the rest carries the demand, else replaced first."""
    tally = found.tally
    if tally.starting:
        return _hold("starting_covers")
    last = _last(found, settings)
    if tally.live <= _stays(tally) and last.outcome == "remove":
        return last
    victim = found.leaving[0]
    # an outdated one can wait: it goes by the highest load of the window, so that a lull takes no capacity away
    load = tally.peak if victim.outdated else tally.demand_high
    if load is not None and load <= _capacity_without(tally, victim) and tally.live > _stays(tally):
        return _remove("evacuate", victim)
    if victim.outdated and load is not None and load > tally.capacity_ready:
        return _hold("rest_over_threshold", victim)
    return Verdict(outcome="replace", reason="evacuate", replica=victim)


def _capacity_without(tally: Tally, victim: Replica) -> int:
    concurrency = tally.rating(victim).concurrency
    own = (tally.loads[victim.name] or 0) if concurrency is None else concurrency
    return tally.capacity_ready - own


def _last(found: Victims, settings: Settings) -> Verdict:
    """The last replica goes only once nobody has asked for the model for long enough."""
    tally, model = found.tally, found.tally.model
    if model.min_replicas or not model.scale_to_zero or tally.demand_high != 0 or tally.starting:
        return _hold("at_min")
    if not passed(_idle_from(found), found.at, settings.idle_seconds):
        return _hold("idle_wait")
    if _cools_down(tally, found.at):
        return _hold("cooldown")
    return _remove("idle", found.first)


def _idle_from(found: Victims) -> datetime | None:
    """The latest of last arrival, wake and, without an arrival, the replica's own beginning, removable or not."""
    model, tally = found.tally.model, found.tally
    moments = [model.last_arrival_at, model.woken_at]
    if model.last_arrival_at is None:
        moments += [replica.since for replica in (*tally.ready, *tally.unready)]
    return max((moment for moment in moments if moment is not None), default=None)


def _cools_down(tally: Tally, at: datetime) -> bool:
    seconds = tally.model.demand_seconds
    too_short = seconds is not None and seconds < tally.window_seconds
    return too_short or not reached(tally.model.last_change_at, at, tally.window_seconds)


def _saving(found: Victims) -> Verdict:
    if _cools_down(found.tally, found.at):
        return _hold("cooldown")
    if not found.candidates:
        return _hold("not_removable")
    refused = [(refusal(found, replica), replica) for replica in found.candidates]
    for reason, replica in refused:
        if reason is None:
            return Verdict(outcome="remove", reason="rest_under_threshold", replica=replica)
    return _hold(refused[0][0] or "rest_over_threshold", refused[0][1])
