"""Units of the nodes: offered, held, free, and the largest free block on one node."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..models import Node, Replica


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassUnits:
    """A resource class over all nodes. Free and largest are over nodes that may take new replicas now."""

    name: str
    offered: int
    held: int
    free: int
    largest_free: int
    out: int
    foreign: int


def held_units(pool_ids: Iterable[int]) -> Mapping[str, Counter[str]]:
    """Node → class → units that replicas hold, in whatever state, until they are gone."""
    held: dict[str, Counter[str]] = defaultdict(Counter)
    rows = Replica.objects.filter(pool__in=list(pool_ids), gone_at__isnull=True)
    for nodes, units, resource in rows.values_list("nodes", "units", "profile__resource"):
        for node in nodes:
            held[node][resource] += units
    return held


def by_class(nodes: Sequence[tuple[Node, bool]], held: Mapping[str, Counter[str]]) -> list[ClassUnits]:
    """(node, may it take new replicas) → totals by class name."""
    classes = sorted({name for node, _ in nodes for name in node.resources})
    return [_one_class(name, nodes, held) for name in classes]


def _one_class(name: str, nodes: Sequence[tuple[Node, bool]], held: Mapping[str, Counter[str]]) -> ClassUnits:
    offering = [(node, open_) for node, open_ in nodes if name in node.resources]
    free = [max(0, node.resources[name] - held.get(node.name, Counter())[name]) for node, open_ in offering if open_]
    return ClassUnits(
        name=name,
        offered=sum(node.resources[name] for node, _ in offering),
        held=sum(held.get(node.name, Counter())[name] for node, _ in offering),
        free=sum(free),
        largest_free=max(free, default=0),
        out=sum(node.resources[name] for node, open_ in offering if not open_),
        foreign=sum(int(node.foreign.get(name, 0)) for node, _ in nodes),
    )
