"""What hosts need a person for: lost, silent and cordoned ones, what follows from it, and the units that are out for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import F, Q
from django.urls import reverse

from .. import clock
from ..domain.phrases import names, number
from ..models import Decision, Node, Replica
from ..observation.hearing import Heard, clock_fault, heard, lost_at
from .asks import MOST_OF_A_KIND, Item

if TYPE_CHECKING:
    from .frame import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class Out:
    """A node that takes nothing new: not heard, or cordoned. `replicas`: how many are on it."""

    node: Node
    heard: Heard
    replicas: int

    @property
    def is_unheard(self) -> bool:
        return self.heard in {"silent", "lost"}

    @property
    def word(self) -> str:
        return self.heard if self.is_unheard else "cordoned"


def out_nodes(frame: Frame) -> list[Out]:
    """Lost ones first, then silent, then cordoned; for those who see the hardware. A second query only where there are any."""
    nodes = list(_out(frame)) if frame.user.sees_everything else []
    counts = _replicas_by_node(frame) if nodes else Counter()
    found = [Out(node=node, heard=heard(node, frame.now), replicas=counts[(node.pool_id, node.name)]) for node in nodes]
    return sorted(found, key=lambda out: ("lost", "silent", "cordoned").index(out.word))


def _out(frame: Frame) -> Any:
    """Nodes that are cordoned, have not reported within their pool's `node_silent_seconds`, or whose clock is off by as much."""
    condition = Q(pk__in=[])
    for pool in frame.shown_pools:
        silent = getattr(pool, "settings", None)
        bound = timedelta(seconds=silent.node_silent_seconds if silent else 30)
        off = Q(host_clock_at__gte=F("reported_at") + bound) | Q(host_clock_at__lte=F("reported_at") - bound)
        condition |= Q(pool=pool) & (Q(reported_at__lt=frame.now - bound) | off | Q(schedulable=False))
    return Node.objects.filter(condition).select_related("pool__settings", "pool__lease").order_by("name")


def _replicas_by_node(frame: Frame) -> Counter[tuple[int, str]]:
    rows = Replica.objects.filter(pool__in=frame.shown_pools, gone_at__isnull=True).values_list("pool_id", "nodes")
    return Counter((pool, name) for pool, nodes in rows for name in nodes)


def unheard_hosts(frame: Frame) -> Iterator[Item]:
    for out in [out for out in frame.out_nodes if out.is_unheard][:MOST_OF_A_KIND]:
        level, code = ("bad", "node_lost") if out.heard == "lost" else ("unknown", "node_silent")
        yield _item(out, level, _silence(out, frame.now), code)


def cordoned_hosts(frame: Frame) -> Iterator[Item]:
    """Those that matter now: with replicas that must leave, or while something lacks the room that they have."""
    for out in [out for out in frame.out_nodes if not out.is_unheard][:MOST_OF_A_KIND]:
        if out.replicas or any(_lacks(row, out.node) for row in frame.short_decisions):
            leave = f"; {_replicas(out)} moved away" if out.replicas else ""
            yield _item(out, "warn", f"is cordoned: nothing new is placed on its {_units(out.node)}{leave}.")


def _item(out: Out, level: str, text: str, code: str = "") -> Item:
    url = reverse("node", args=[out.node.name])
    return Item(label=out.word, level=level, subject=out.node.name, text=text, url=url, act="node →", place="nodes", code=code)


def _silence(out: Out, now: datetime) -> str:
    if fault := clock_fault(out.node, now):
        return f"is not used, for {fault}; what runs there runs on and is left alone."
    said = f"has not reported for {clock.age(out.node.reported_at or now, now)}"
    if out.heard == "lost":
        gone = f"; {_replicas(out)} replaced where there is room" if out.replicas else ""
        return f"{said}: its {_units(out.node)} are missing{gone}."
    return f"{said}; {_left_alone(out)}. {_fate(out, now)}"


def _replicas(out: Out) -> str:
    return f"its {number(out.replicas, 'replica')} {'is' if out.replicas == 1 else 'are'}"


def _left_alone(out: Out) -> str:
    return f"{_replicas(out)} unknown and left alone" if out.replicas else "none of ours is on it"


def _fate(out: Out, now: datetime) -> str:
    at = lost_at(out.node)
    when = f"in {clock.countdown((at - now).total_seconds())}" if at else "later"
    follows = f", and then {_replicas(out)} replaced where there is room" if out.replicas else ""
    return f"The host counts as lost {when}{follows}."


def _units(node: Node) -> str:
    """16 sim, 2 h100."""
    return names([f"{units:,} {name}" for name, units in sorted(node.resources.items()) if units]) or "units"


def _lacks(row: Decision, node: Node) -> bool:
    """Whether what could not be placed asks for a class that the node has."""
    return row.pool_id == node.pool_id and any(node.resources.get(name) for name in _lacking(row))


def _lacking(row: Decision) -> list[str]:
    """Classes that had too little room."""
    rooms = [limit for limit in row.limited_by if isinstance(limit, dict) and limit.get("kind") == "room"]
    return list(dict.fromkeys(str(limit.get("resource")) for limit in rooms))


def units_out(row: Decision, frame: Frame) -> str:
    """` 16 sim are on n1, which is cordoned.` of a class that lacks room; "" where nothing of it is out."""
    told = [
        f"{out.node.resources[name]:,} {name} on {out.node.name}, which is {out.word}"
        for name in _lacking(row)
        for out in frame.out_nodes
        if out.node.pool_id == row.pool_id and out.node.resources.get(name)
    ]
    return f" Out of use: {names(told)}." if told else ""
