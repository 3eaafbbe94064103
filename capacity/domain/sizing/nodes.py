"""Where the plan goes: the nodes that carry a class of it, unit by unit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from capacity.domain.sizing.types import Answer
from capacity.domain.types import Snapshot

Place = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """Units of one class on one node: held now, added by the plan, and the rest. `takes_new` false: cordoned or silent."""

    node: str
    resource: str
    units: int
    held: int
    added: int
    takes_new: bool

    @property
    def free(self) -> int:
        return max(0, self.units - self.held - self.added)


def node_rows(snapshot: Snapshot, answer: Answer) -> tuple[NodeRow, ...]:
    """By class and name, for the classes of the plan and of what is missing. With `--room total` others hold nothing."""
    added = _added(answer)
    held = _held(snapshot, answer.model if answer.question.room == "total" else None)
    classes = {row.resource for row in answer.rows} | {
        str(stop.facts["resource"]) for stop in answer.binding if "resource" in stop.facts
    }
    rows = [
        NodeRow(
            node=node.name,
            resource=resource,
            units=units,
            held=held[node.name, resource],
            added=added[node.name, resource],
            takes_new=node.schedulable and node.ready,
        )
        for node in snapshot.nodes or ()
        for resource, units in node.resources.items()
        if resource in classes and units
    ]
    return tuple(sorted(rows, key=lambda row: (row.resource, row.node)))


def _added(answer: Answer) -> Counter[Place]:
    found: Counter[Place] = Counter()
    for row in answer.rows:
        for nodes in row.nodes:
            for node in nodes:
                found[node, row.resource] += row.units_each // row.hosts
    return found


def _held(snapshot: Snapshot, model: str | None) -> Counter[Place]:
    """What replicas of `model` (None: of all) hold on each node."""
    profiles = {(profile.model, profile.name): profile for profile in snapshot.profiles}
    found: Counter[Place] = Counter()
    for replica in snapshot.replicas or ():
        profile = profiles[replica.model, replica.profile]
        for node in replica.nodes if model in (None, replica.model) else ():
            found[node, profile.resource] += profile.units
    return found
