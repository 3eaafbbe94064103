"""What is heard of a node, told from its row: for pages, metrics and rules as passes judge it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from ..models import Node, PoolSettings
from ..rows import patience
from .sights import KnownNode, NodeSight, Patience, clock_words, sight

Heard = Literal["reporting", "silent", "lost", "typed_in"]
HEARD: tuple[Heard, ...] = ("reporting", "silent", "lost", "typed_in")


def heard(node: Node, now: datetime) -> Heard:
    """The node's pool, and the pool's settings and lease, are read with it."""
    if node.reported_at is None:
        return "typed_in"
    found = sight_of(node, now)
    return "lost" if found.is_lost else "reporting" if found.is_ready else "silent"


def lost_at(node: Node) -> datetime | None:
    """When a node that stays silent counts as lost, if passes go on coming; None where it never reported."""
    if node.reported_at is None:
        return None
    bounds = _patience(node)
    return max(node.reported_at, bounds.watched_since or node.reported_at) + bounds.lost


def clock_fault(node: Node, now: datetime) -> str:
    """`its clock is behind …` of a node that is silent for that; else empty."""
    found = sight_of(node, now)
    return clock_words(found) if found.clock_off and not found.is_lost else ""


def sight_of(node: Node, now: datetime) -> NodeSight:
    known = KnownNode(name=node.name, resources={}, reported_at=node.reported_at, host_clock_at=node.host_clock_at)
    return sight(known, None, _patience(node), now)


def _patience(node: Node) -> Patience:
    lease = getattr(node.pool, "lease", None)
    settings = getattr(node.pool, "settings", None) or PoolSettings()
    return patience(settings, lease.unbroken_since if lease else None)
