"""Who gets what is free: tiers, rounds of one replica each, and for each replica quota, room and bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, Literal

from capacity.domain.needs import Need
from capacity.domain.placement import Rating, Room
from capacity.domain.snapshot.document import instant
from capacity.domain.types import Action, LimitedBy, Node, Replica
from quotas.domain.ledger import Ledger

MOST_GRANTS: Final = 100_000
"""Replicas that one pass adds at most over all models; a need of 10^12 would otherwise never end."""


@dataclass(slots=True, kw_only=True)
class Granter:
    """Gives replicas to needs, one at a time. `ledger` None: quotas or measurements could not be read (`missing` names
    the stores), so nothing is given. `room` None: the nodes could not be read."""

    ledger: Ledger | None
    room: Room | None
    nodes: Mapping[str, Node]
    missing: tuple[str, ...] = ()
    granted: list[Action] = field(default_factory=list)

    def serve(self, needs: Sequence[Need]) -> None:
        """Tiers, each done before the next: floors, wakes, whoever is within his entitlement, the rest by priority, and
        likewise the models without a scope."""
        self._rounds(needs, lambda need: need.floor_open, self._grant)
        self._rounds(needs, lambda need: need.wake_open, self._grant)
        self._rounds(needs, lambda need: need.open, self._grant_entitled)
        owned = [need for need in needs if need.tally.model.scope is not None]
        self._by_priority(owned)
        self._by_priority([need for need in needs if need.tally.model.scope is None])

    def measure(self, need: Need, rating: Rating) -> bool:
        """One replica of exactly that profile for a sweep: in the room, the quotas and the maximum that are left."""
        if self._stopped_outright(need):
            return False
        if rating.profile.state != "active":
            return _pass_over(need, rating, "not_active")
        if need.at_max:
            _note_max(need)
            return False
        return self._start(need, rating)

    def one_more(self, need: Need) -> bool:
        """One replica for a need that is met already, in the same order: within the entitlement first."""
        return self._grant_entitled(need) or self._grant(need)

    def _by_priority(self, needs: Iterable[Need]) -> None:
        """A lower priority starts when the higher has no need left that can be placed."""
        ranked = sorted(needs, key=lambda need: -need.tally.model.priority)
        for _, equals in groupby(ranked, key=lambda need: need.tally.model.priority):
            self._rounds(list(equals), lambda need: need.open, self._grant)

    def _rounds(self, needs: Iterable[Need], wants: Callable[[Need], bool], grant: Callable[[Need], bool]) -> None:
        """One each, by priority, then the largest unmet share, then name; who cannot be served drops out."""
        waiting = [need for need in needs if wants(need)]
        while waiting:
            waiting.sort(key=lambda need: need.turn)
            waiting = [need for need in waiting if grant(need) and wants(need)]

    def _grant_entitled(self, need: Need) -> bool:
        return self._grant(need, entitled_only=True)

    def _grant(self, need: Need, entitled_only: bool = False) -> bool:
        if self._stopped_outright(need):
            return False
        for rating in self._candidates(need):
            if entitled_only and not self._entitled(need, rating):
                continue
            if self._try(need, rating):
                return True
        if need.at_max and not entitled_only:
            _note_max(need)
        return False

    def _candidates(self, need: Need) -> Sequence[Rating]:
        """Placement order; a wake goes on with the profile that it began with."""
        return [need.wake_profile] if need.wake_profile is not None and need.purpose == "wake" else need.order

    def _stopped_outright(self, need: Need) -> bool:
        if self.ledger is None:
            for store in self.missing:
                _note(need, "unknown", {"store": store})
            if self.room is None:
                _note(need, "unknown", {"store": "nodes"})
            if need.at_max:
                _note_max(need)
            return True
        if need.purpose != "floor" and need.added >= need.step:
            _note(need, "step", {"max": need.step})
            return True
        if len(self.granted) >= MOST_GRANTS:
            _note(need, "step", {"max": MOST_GRANTS})
            return True
        return False

    def _entitled(self, need: Need, rating: Rating) -> bool:
        profile = rating.profile
        return self.ledger is not None and self.ledger.entitled(need.tally.model.name, profile.resource, rating.units)

    def _try(self, need: Need, rating: Rating) -> bool:
        """One replica of this profile: a draining one back, else a new one; where neither goes, what stopped it is noted."""
        if rating.profile.state != "active":
            return _pass_over(need, rating, "not_active")
        if not rating.serves(need.purpose):
            return _pass_over(need, rating, "unmeasured" if rating.concurrency is None else "unable")
        if need.purpose == "wake" and rating.concurrency is None and need.added:
            # The floor has given one already, and of an unmeasured profile a wake asks for no more.
            need.wake_profile = rating
            return False
        if self._undrain(need, rating):
            return True
        return not need.at_max and self._start(need, rating)

    def _undrain(self, need: Need, rating: Rating) -> bool:
        waiting = need.drained.get(rating.name)
        if not waiting or not need.within_max or self.ledger is None or not self._may_come_back(need, rating):
            return False
        replica = next((replica for replica in waiting if self._stands_well(replica)), None)
        if replica is None:
            return False
        waiting.remove(replica)
        load = need.tally.loads[replica.name] or 0
        if self.ledger is not None:
            self.ledger.regain(need.tally.model.name, rating.profile.resource, rating.units)
        need.demand += load
        need.capacity += load if rating.concurrency is None else rating.concurrency
        return self._give(need, rating, "undrain", replica=replica.name)

    def _may_come_back(self, need: Need, rating: Rating) -> bool:
        if self.ledger is None:
            return False
        model, resource = need.tally.model.name, rating.profile.resource
        if self.ledger.exceeded(model, resource):
            return False
        return self.ledger.entitled(model, resource, rating.units) or not self.ledger.others_short(model, resource)

    def _stands_well(self, replica: Replica) -> bool:
        """Whether its nodes are known and take new replicas; nothing is known of one without nodes."""
        nodes = [self.nodes.get(name) for name in replica.nodes]
        return bool(nodes) and all(node is not None and node.schedulable and node.ready for node in nodes)

    def _start(self, need: Need, rating: Rating) -> bool:
        model, profile = need.tally.model.name, rating.profile
        if self.ledger is None:
            return False
        blocked = self.ledger.blocked(model, profile.resource, rating.units)
        for stop in blocked:
            facts: dict[str, str | int] = {"scope": stop.scope, "target": stop.target, "limit": stop.limit, "used": stop.used}
            _note(need, "limit", facts, stop.scope, stop.target)
        if blocked:
            return _stopped(need, rating, "at_limit")
        if self.room is None:
            _note(need, "unknown", {"store": "nodes"})
            return _stopped(need, rating, "room_unknown")
        nodes = self.room.find(profile)
        if nodes is None:
            return self._no_room(need, rating, self.room)
        reserved = self.ledger.reserved(model, profile.resource, rating.units, self.room.beyond_kept(profile.resource))
        if reserved is not None:
            _note(need, "guarantee_reserved", {"scope": reserved.scope, "units": reserved.units}, reserved.scope)
            return _stopped(need, rating, "guarantee_reserved")
        self.room.take(profile, nodes)
        self.ledger.grant(model, profile.resource, rating.units)
        need.started += 1
        need.capacity += need.gives(rating)
        return self._give(need, rating, "start", nodes=nodes)

    def _give(
        self, need: Need, rating: Rating, op: Literal["start", "undrain"], nodes: tuple[str, ...] = (), replica: str | None = None
    ) -> bool:
        if need.purpose == "wake" and need.wake_profile is None:
            need.wake_profile = rating
        need.added += 1
        model = need.tally.model
        action = Action(
            op=op,
            model=model.name,
            reason=need.reason,
            profile=rating.name,
            nodes=nodes,
            replica=replica,
            advice=model.mode == "advise" and need.reason != "measure",  # a person asked for that one by name
        )
        need.actions.append(action)
        self.granted.append(action)
        return True

    def _no_room(self, need: Need, rating: Rating, room: Room) -> bool:
        profile = rating.profile
        short = room.shortage(profile)
        facts: dict[str, str | int] = {"resource": profile.resource, "free": short.free, "largest_free": short.largest_free}
        _note(need, "room", facts, profile.name)
        if short.backoff_until is not None:
            _note(need, "backoff", {"profile": profile.name, "until": instant(short.backoff_until)}, profile.name)
        return _stopped(need, rating, "no_room")


def _note(need: Need, kind: str, facts: Mapping[str, str | int], *subject: str) -> None:
    """Keep the latest numbers of each thing that was in the way."""
    key = (kind, *(subject or (str(facts.get("store", "")),)))
    need.stops[key] = LimitedBy(kind=kind, facts=facts)


def _note_max(need: Need) -> None:
    most = need.tally.model.max_replicas
    if most is not None:
        _note(need, "max_replicas", {"max": most})


def _stopped(need: Need, rating: Rating, reason: str) -> bool:
    need.stopped[rating.name] = reason
    return False


def _pass_over(need: Need, rating: Rating, kind: str) -> bool:
    if not need.at_max:
        _note(need, kind, {"profile": rating.name}, rating.name)
    return False
