"""Hosts: what they offer, what is free, how old their report is. For those who run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from ..models import Node
from ..observation.hearing import Heard, clock_fault, heard
from ..unheard import unheard_if_known
from .frame import Frame, frame_of
from .hardware import by_class, held_units
from .live import live
from .now import open_nodes

PAGE_ROWS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node with (class, held, offered) of each class."""

    node: Node
    heard: Heard
    clock_fault: str
    units: list[tuple[str, int, int]]

    @property
    def is_silent(self) -> bool:
        return self.heard in {"silent", "lost"}

    @property
    def foreign(self) -> list[tuple[int, str, list[str]]]:
        """Units of a class that processes that are not ours hold, and on which devices, where the host can name them."""
        ids = self.node.foreign_devices.items()
        return [
            (units, name, sorted(device for device, kind in ids if kind == name))
            for name, units in sorted(self.node.foreign.items())
            if units
        ]

    @property
    def state(self) -> tuple[str, str, str]:
        """Level, icon and word."""
        if self.heard == "lost":
            return "bad", "✕", "lost"
        if self.heard == "silent":
            return "unknown", "○", "silent"
        if not self.node.schedulable:
            return "warn", "◑", "cordoned"
        return ("good", "●", "reporting") if self.node.reported_at else ("unknown", "○", "never reported")


@live
def nodes(request: HttpRequest) -> HttpResponse:
    frame = frame_of(request)
    if not frame.user.sees_everything:
        raise Http404
    opened = open_nodes(frame)
    held = held_units(pool.pk for pool in frame.shown_pools)
    page = Paginator(opened, PAGE_ROWS).get_page(request.GET.get("page"))
    context = {
        "classes": by_class(opened, held),
        "rows": [row_of(node, frame.now, held.get(node.name, {})) for node, _ in page.object_list],
        "page": page,
        "reporting": sum(1 for node, _ in opened if heard(node, frame.now) == "reporting"),
        "total": len(opened),
        "unheard": strangers(frame),
        "place": "nodes",
    }
    return render(request, "pages/nodes.html", context)


def strangers(frame: Frame) -> list[str]:
    """Pools that hosts report for and that there are not. A pool that is there and has no passes is told elsewhere."""
    known = {pool.name for pool in frame.pools}
    return [name for name in unheard_if_known(frame.now) or () if name not in known]


def row_of(node: Node, now: datetime, held: Mapping[str, int]) -> NodeRow:
    """A node with what replicas hold of its classes."""
    classes = sorted({*node.resources, *held})
    units = [(name, held.get(name, 0), int(node.resources.get(name, 0))) for name in classes]
    return NodeRow(node=node, heard=heard(node, now), clock_fault=clock_fault(node, now), units=units)
