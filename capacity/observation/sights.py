"""How each host is seen: what it offers, how old its word is, and whether that word can be trusted.

Pure. Ages are told by the control plane's clock alone: a host whose clock was set is heard of as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from ..ports import NodeReport, ReplicaReport


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNode:
    """A node as its row has it. `reported_at`: when it was last heard of, by our clock; `host_clock_at`: by its own."""

    name: str
    resources: Mapping[str, int]
    reported_at: datetime | None
    labels: Mapping[str, str] = field(default_factory=dict)
    host_clock_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSight:
    """How a node is seen. `resources` are the offered units less those held by replicas that nobody knows, `clock_off` how far
    its clock is from ours (ahead is positive; 0 where it does not matter)."""

    name: str
    resources: Mapping[str, int]
    foreign: Mapping[str, int]
    labels: Mapping[str, str]
    reported_at: datetime | None
    is_ready: bool
    is_lost: bool
    host_clock_at: datetime | None = None
    clock_off: timedelta = timedelta(0)
    foreign_devices: Mapping[str, str] = field(default_factory=dict)
    templates: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a host may be silent, an unseen start is asked for again, and a registered engine may fail to answer.

    `watched_since`: since when somebody listened without a gap. While nobody did, no host could be heard."""

    node_silent_seconds: int
    node_lost_seconds: int
    forget_start_seconds: int = 120
    stale_after_seconds: int = 45
    watched_since: datetime | None = None

    @property
    def silent(self) -> timedelta:
        return timedelta(seconds=self.node_silent_seconds)

    @property
    def lost(self) -> timedelta:
        return timedelta(seconds=self.node_lost_seconds)


def sight(node: KnownNode, report: NodeReport | None, patience: Patience, now: datetime) -> NodeSight:
    """A node never heard of is typed in by a person: not silent, with the units that were written down. (A snapshot says that it
    is not ready: nobody answers there.)

    One whose clock is off by more than a silence says nothing of now, and orders would die on it: silent, but never lost as
    long as it goes on reporting."""
    heard_at, clock_off = heard(node, report, patience, now)
    silent_for = timedelta(0) if heard_at is None else now - heard_at
    return NodeSight(
        name=node.name,
        resources=dict(report.resources) if report else dict(node.resources),
        foreign=dict(report.foreign) if report else {},
        labels={**(report.labels if report else {}), **node.labels},
        reported_at=heard_at,
        is_ready=not clock_off and abs(silent_for) < patience.silent,
        is_lost=heard_at is not None and now - max(heard_at, patience.watched_since or heard_at) >= patience.lost,
        host_clock_at=report.at if report else node.host_clock_at,
        clock_off=clock_off,
        foreign_devices=dict(report.foreign_devices) if report else {},
        templates=dict(report.templates) if report else {},
    )


def heard(node: KnownNode, report: NodeReport | None, patience: Patience, now: datetime) -> tuple[datetime | None, timedelta]:
    """When the node was last heard of, by our clock, and how far its clock is off.

    A report that is new to us came since the last pass, whatever its own time says: a clock that was set back, here or there,
    makes nobody lost. An old one that waited while no pass was made looks the same, and then it is waited for once more."""
    last = node.host_clock_at or node.reported_at
    if node.reported_at is not None and last is not None and (report is None or report.at == last):
        return node.reported_at, beyond(patience.silent, last - node.reported_at)
    if report is None:
        return None, timedelta(0)
    off = report.at - now
    is_first_and_old = last is None and off < timedelta(0)
    if is_first_and_old or not beyond(patience.silent, off):
        return report.at, timedelta(0)
    return now, off


def beyond(bound: timedelta, off: timedelta) -> timedelta:
    """`off` where it is as much as the bound, either way; else nothing."""
    return off if abs(off) >= bound else timedelta(0)


def node_problem(node: NodeSight, now: datetime) -> Mapping[str, str] | None:
    """What passes and pages say of a node that is not ready."""
    if node.is_ready:
        return None
    code = "node_lost" if node.is_lost else "node_silent"
    return {"code": code, "subject": f"node:{node.name}", "detail": f"{_since(node)}; {_fate(node)}"}


def _since(node: NodeSight) -> str:
    if node.clock_off and not node.is_lost:
        return clock_words(node)
    return f"no report since {node.reported_at:%H:%M:%S} UTC" if node.reported_at else "no report since ever"


def clock_words(node: NodeSight) -> str:
    """How its clock is off. A report that waited while no pass was made looks like a clock that is behind."""
    way = "ahead" if node.clock_off > timedelta(0) else "behind"
    return f"its clock is {way}: it reported as of {node.host_clock_at:%Y-%m-%d %H:%M:%S} UTC"


def _fate(node: NodeSight) -> str:
    return "its replicas are replaced" if node.is_lost else "its replicas are left alone"


def without_units(node: NodeSight, replica: ReplicaReport) -> NodeSight:
    """Less what a replica holds that nobody knows."""
    left = max(0, node.resources.get(replica.resource, 0) - replica.units)
    return replace(node, resources={**node.resources, replica.resource: left})
