"""One model in the course of a plan: what it needs, what becomes of it without a need, and what came of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from capacity.domain import measuring
from capacity.domain.giving.reclaim import Return
from capacity.domain.load import Tally
from capacity.domain.needs import Need
from capacity.domain.placement import Rating
from capacity.domain.removal import Verdict
from capacity.domain.types import Action, LimitedBy, Model, Replica, Snapshot
from capacity.domain.victims import Victims
from quotas.domain.types import Quota


@dataclass(slots=True, kw_only=True)
class Case:
    """`measured`: what sweeps asked for, and what they got. `returned`: what is given back for others. `over`: the replica that
    goes down to a limit, and the limit's row."""

    tally: Tally
    replicas: Sequence[Replica]
    found: Victims
    order: list[Rating]
    verdict: Verdict | None = None
    need: Need | None = None
    measured: list[Need] = field(default_factory=list)
    returned: list[Return] = field(default_factory=list)
    over: tuple[Replica, Quota] | None = None

    @property
    def model(self) -> Model:
        return self.tally.model

    @property
    def left_alone(self) -> bool:
        return self.model.bounds_conflict or self.model.mode == "paused"

    @property
    def started(self) -> int:
        """How many of the model were started in this pass so far."""
        return (self.need.started if self.need else 0) + sum(len(need.actions) for need in self.measured)

    @property
    def given(self) -> frozenset[str]:
        """The classes in which it was given something in this pass."""
        actions = [action for need in (self.need, *self.measured) if need is not None for action in need.actions]
        return frozenset(self.tally.ratings[action.profile].profile.resource for action in actions)

    def ended(self) -> list[Replica]:
        """Stuck replicas that are ended now, whatever else is decided."""
        return [] if self.left_alone else sorted((r for r in self.tally.stuck if r.removable), key=lambda r: r.name)

    def given_back(self) -> list[Action]:
        """What goes after its sweep."""
        return measuring.given_back(self.tally, self.replicas)

    def own_removal(self) -> Replica | None:
        """The replica that the model's own rules take in this pass, unasked; None where they only advise it."""
        if self.verdict is None or self.verdict.outcome != "remove" or self.ended() or self.model.mode != "auto":
            return None
        return self.verdict.replica

    def leaving(self) -> list[Replica]:
        """What this pass ends or drains, whatever is granted; advice ends nothing."""
        going = [replica for replica in self.ended() if acts(self.model, replica, "start_timeout")]
        if back := {action.replica for action in self.given_back()}:
            going += [replica for replica in self.replicas if replica.name in back]
        own = self.own_removal()
        return going if own is None else [*going, own]

    def outcome(self, snapshot: Snapshot) -> Verdict:
        """Outcome and reason, `replace` meaning add; `start_timeout` stands for all that are ended.

        What is done for a sweep is only said where nothing else is done."""
        found = self._own_outcome(snapshot)
        if found.outcome != "hold" or snapshot.replicas is None:
            return found
        if any(need.actions for need in self.measured):
            return Verdict(outcome="replace", reason="measure")
        return Verdict(outcome="remove", reason="measure") if self.given_back() else found

    def _own_outcome(self, snapshot: Snapshot) -> Verdict:
        model, need = self.model, self.need
        if snapshot.replicas is None:
            return Verdict(outcome="hold", reason="inventory_unknown")
        if model.mode == "paused":
            return Verdict(outcome="hold", reason="paused")
        if model.bounds_conflict:
            return Verdict(outcome="hold", reason="bounds_conflict")
        leaving = self.verdict.replica if self.verdict else None
        if need is not None and need.added:
            return Verdict(outcome="replace", reason=need.reason, replica=leaving)
        if self.ended():
            return Verdict(outcome="remove", reason="start_timeout")
        if self.returned:
            return Verdict(outcome="remove", reason="reclaimed", replica=self.returned[0].replica)
        if self.over is not None:
            return Verdict(outcome="remove", reason="over_limit", replica=self.over[0])
        if need is not None:
            return Verdict(outcome="hold", reason=unmet(need, snapshot), replica=leaving)
        return self.verdict or Verdict(outcome="hold", reason="steady")

    def count(self, verdict: Verdict) -> int:
        """Replicas added, or removed for that reason."""
        if verdict.outcome == "hold":
            return 0
        if verdict.reason == "measure":
            return self.started if verdict.outcome == "replace" else len(self.given_back())
        if verdict.outcome == "replace":
            return self.need.added if self.need is not None else 0
        if verdict.reason == "reclaimed":
            return len(self.returned)
        return len(self.ended()) if verdict.reason == "start_timeout" else 1

    def removals(self, snapshot: Snapshot) -> list[Action]:
        """Its drains and cancels."""
        if snapshot.replicas is None:
            return self.given_back()
        found = [removal_of(self.model, replica, "start_timeout") for replica in self.ended()] + self.given_back()
        found += [removal_of(self.model, gone.replica, "reclaimed", gone.asker) for gone in self.returned]
        if self.over is not None:
            found.append(removal_of(self.model, self.over[0], "over_limit"))
        removes = self.verdict is not None and self.verdict.outcome == "remove" and not self.ended()
        if removes and self.verdict is not None and self.verdict.replica is not None:
            found.append(removal_of(self.model, self.verdict.replica, self.verdict.reason))
        return found


def unmet(need: Need, snapshot: Snapshot) -> str:
    """Why a need got nothing: the first that applies."""
    if need.promised or need.awaited:
        return "awaiting_reclaim"
    if need.at_max:
        return "at_max"
    if snapshot.quotas is None or snapshot.scopes is None or snapshot.measurements is None:
        return "policy_unavailable"
    useful = [rating for rating in need.order if rating.serves(need.first_purpose)]
    active = [rating for rating in useful if rating.profile.state == "active"]
    if not active:
        return "not_active" if useful else "unmeasured"
    return next((need.stopped[rating.name] for rating in active if rating.name in need.stopped), "no_room")


def acts(model: Model, replica: Replica, reason: str) -> bool:
    """Whether a removal is done, and not only advised: of `add_only` the cancel of a stuck start alone."""
    return model.mode == "auto" or (model.mode == "add_only" and replica.state == "starting" and reason == "start_timeout")


def removal_of(model: Model, replica: Replica, reason: str, asker: str | None = None) -> Action:
    """A cancel of a starting one, a drain of a ready or unready one."""
    return Action(
        op="cancel" if replica.state == "starting" else "drain",
        model=model.name,
        reason=reason,
        profile=replica.profile,
        replica=replica.name,
        returned_for=asker,
        advice=not acts(model, replica, reason),
    )


def limits_of(need: Need) -> tuple[LimitedBy, ...]:
    """What stopped more, each once, in the order in which it was met."""
    found: list[LimitedBy] = []
    for stop in need.stops.values():
        if stop not in found:
            found.append(stop)
    return tuple(found)
