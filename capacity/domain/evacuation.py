"""What cordoning a node would come to: the plan itself, carried over several passes in which starts come up and drains end.

The instant stands still, so that nothing moves but what the cordon moves, and what was about to move anyway. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from capacity.domain.plan import plan
from capacity.domain.types import Action, Decision, Profile, Replica, Snapshot
from quotas.domain.policy import QuotaPolicy

MOST_PASSES: Final = 60

Fate = Literal["moves", "ends", "stays"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One replica of the node. `moves`: another is started at `nodes` (on `to_profile`) before it is drained; `ends`: the rest
    does without it, or it was on its way out; `stays`: `reason` and `why` say what is in the way. `units` are those on this
    node, `passes` after how many passes it is gone (0 where it stays)."""

    replica: str
    model: str
    profile: str
    resource: str
    units: int
    fate: Fate
    reason: str
    why: str = ""
    to_profile: str = ""
    nodes: tuple[str, ...] = ()
    passes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evacuation:
    """`moves` by replica. `freed`, `held`: class → units that replicas give back on the node, and go on to hold there.
    `is_settled`: nothing moves any more after `passes` passes."""

    node: str
    moves: tuple[Move, ...]
    freed: Mapping[str, int]
    held: Mapping[str, int]
    passes: int
    is_settled: bool

    def count(self, fate: Fate) -> int:
        return sum(1 for move in self.moves if move.fate == fate)

    @property
    def moving(self) -> int:
        return self.count("moves")

    @property
    def ending(self) -> int:
        return self.count("ends")

    @property
    def staying(self) -> int:
        return self.count("stays")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What opening a node again would come to: units that become free, and what the next pass would start there."""

    node: str
    free: Mapping[str, int]
    starts: tuple[Action, ...]


def with_node(snapshot: Snapshot, node: str, *, schedulable: bool) -> Snapshot:
    """The snapshot with that node cordoned or open."""
    nodes = tuple(replace(n, schedulable=schedulable) if n.name == node else n for n in snapshot.nodes or ())
    return replace(snapshot, nodes=nodes)


def evacuation(snapshot: Snapshot, node: str, policy: QuotaPolicy | None = None) -> Evacuation | None:
    """The node is cordoned, and passes are made until nothing moves; None where nodes or replicas could not be read."""
    if snapshot.nodes is None or snapshot.replicas is None:
        return None
    course = _Course(with_node(snapshot, node, schedulable=False), node, policy)
    course.run()
    moves = tuple(course.move(r) for r in sorted(snapshot.replicas, key=lambda r: r.name) if node in r.nodes)
    return Evacuation(
        node=node,
        moves=moves,
        freed=_units(move for move in moves if move.fate != "stays"),
        held=_units(move for move in moves if move.fate == "stays"),
        passes=course.passes,
        is_settled=course.is_settled,
    )


def opening(snapshot: Snapshot, node: str, policy: QuotaPolicy | None = None) -> Opening | None:
    """The node is opened and one pass is made; None where nodes or replicas could not be read."""
    if snapshot.nodes is None or snapshot.replicas is None:
        return None
    offered = next((dict(n.resources) for n in snapshot.nodes if n.name == node), {})
    for profile, _ in _on(snapshot, node):
        offered[profile.resource] = max(0, offered.get(profile.resource, 0) - profile.units)
    found = plan(with_node(snapshot, node, schedulable=True), policy)
    starts = tuple(action for action in found.actions if action.op == "start" and node in action.nodes)
    return Opening(node=node, free={name: units for name, units in sorted(offered.items()) if units}, starts=starts)


def _on(snapshot: Snapshot, node: str) -> list[tuple[Profile, Replica]]:
    profiles = {(profile.model, profile.name): profile for profile in snapshot.profiles}
    return [(profiles[r.model, r.profile], r) for r in snapshot.replicas or () if node in r.nodes]


def _units(moves: Iterable[Move]) -> dict[str, int]:
    units: dict[str, int] = {}
    for move in moves:
        units[move.resource] = units.get(move.resource, 0) + move.units
    return dict(sorted(units.items()))


class _Course:
    """The passes, one after another, and what became of each replica in them."""

    def __init__(self, snapshot: Snapshot, node: str, policy: QuotaPolicy | None) -> None:
        self.snapshot, self.node, self.policy = snapshot, node, policy
        self.passes, self.is_settled = 0, False
        self.profiles = {(profile.model, profile.name): profile for profile in snapshot.profiles}
        self.models = {model.name: model for model in snapshot.models}
        self.concurrency = {(m.model, m.profile): m.max_concurrency for m in snapshot.measurements or ()}
        self.decisions: Mapping[str, Decision] = {}
        self.removed: dict[str, tuple[Action, int]] = {}
        self.leaving: dict[str, int] = {r.name: 1 for r in snapshot.replicas or () if r.state == "draining"}
        self.waiting: dict[str, list[Action]] = {}
        self.replaced: dict[str, Action] = {}

    def run(self) -> None:
        while self.passes < MOST_PASSES:
            found = plan(self.snapshot, self.policy)
            self.decisions = {decision.model: decision for decision in found.decisions}
            acting = [action for action in found.actions if not action.advice]
            unfinished = any(r.state in ("starting", "draining") for r in self.snapshot.replicas or ())
            if not acting and not unfinished:
                self.is_settled = True
                return
            self.passes += 1
            self.snapshot = replace(self.snapshot, replicas=self._after(acting))

    def _after(self, acting: Sequence[Action]) -> tuple[Replica, ...]:
        """What was starting is ready, what was draining is gone, and what was decided is done."""
        replicas = {r.name: self._further(r) for r in self.snapshot.replicas or () if r.state != "draining"}
        gone = {r.name: r for r in self.snapshot.replicas or () if r.state == "draining"}
        for number, action in enumerate(acting):
            if action.op == "start":
                new = self._started(action, number)
                replicas[new.name] = new
            elif action.op == "undrain" and action.replica in gone:
                self.leaving.pop(action.replica, None)
                replicas[action.replica] = replace(gone[action.replica], state="ready", drain_reason=None, drained_for=None)
            elif action.replica in replicas:
                self._end(action, replicas)
        return tuple(replicas.values())

    def _further(self, replica: Replica) -> Replica:
        if replica.state != "starting":
            return replica
        return replace(replica, state="ready", since=self.snapshot.at, in_flight=0, sampled_at=self.snapshot.at)

    def _started(self, action: Action, number: int) -> Replica:
        if action.reason == "evacuate":
            self.waiting.setdefault(action.model, []).append(action)
        return Replica(
            name=f"(new {self.passes}.{number})",
            model=action.model,
            profile=action.profile,
            nodes=action.nodes,
            state="starting",
            since=self.snapshot.at,
        )

    def _end(self, action: Action, replicas: dict[str, Replica]) -> None:
        """A cancelled one is gone, a drained one drains; its requests are served by the others from now on."""
        name = action.replica or ""
        self.removed[name] = (action, self.passes + (action.op == "drain"))
        if action.reason == "evacuate" and self.waiting.get(action.model):
            self.replaced[name] = self.waiting[action.model].pop(0)
        left = replicas.pop(name)
        if action.op == "drain":
            replicas[name] = replace(left, state="draining", in_flight=0, since=self.snapshot.at)
            self._hand_over(left, replicas)

    def _hand_over(self, left: Replica, replicas: dict[str, Replica]) -> None:
        others = [r for r in replicas.values() if r.model == left.model and r.state == "ready" and r.in_flight is not None]
        weights = [self.concurrency.get((r.model, r.profile), 0) for r in others]
        for r, more in zip(others, shares(left.in_flight or 0, weights), strict=True):
            replicas[r.name] = replace(r, in_flight=(r.in_flight or 0) + more)

    # What became of a replica

    def move(self, replica: Replica) -> Move:
        profile = self.profiles[replica.model, replica.profile]
        known = Move(
            replica=replica.name,
            model=replica.model,
            profile=replica.profile,
            resource=profile.resource,
            units=profile.units,
            fate="stays",
            reason="",
        )
        if replica.name in self.removed:
            action, passes = self.removed[replica.name]
            instead = self.replaced.get(replica.name)
            if instead is None:
                return replace(known, fate="ends", reason=action.reason, passes=passes)
            return replace(
                known, fate="moves", reason=action.reason, passes=passes, to_profile=instead.profile, nodes=instead.nodes
            )
        if replica.name in self.leaving:
            return replace(known, fate="ends", reason="draining", passes=1)
        reason, why = self._why_it_stays(replica)
        return replace(known, reason=reason, why=why)

    def _why_it_stays(self, replica: Replica) -> tuple[str, str]:
        decision, model = self.decisions[replica.model], self.models[replica.model]
        if not replica.removable:
            return "not_removable", "It is only watched and never stopped from here."
        if model.mode in ("advise", "add_only") and decision.reason == "evacuate":
            return model.mode, f"Its model is in mode {model.mode}: leaving a node is advice. {decision.why}"
        if not self.is_settled:
            return decision.reason, f"More than {MOST_PASSES} passes are needed. {decision.why}"
        return decision.reason, decision.why


def shares(load: int, weights: Sequence[int]) -> list[int]:
    """Whole shares of a load in proportion to the weights (equal where all are 0), the remainder to the first ones."""
    if not weights:
        return []
    parts = list(weights) if sum(weights) else [1] * len(weights)
    whole = [load * part // sum(parts) for part in parts]
    for position in range(load - sum(whole)):
        whole[position] += 1
    return whole
