"""Engines that were running before us: seen by being read, counted by their rows, never ordered about.

Pure: rows, answers and reports in; no host of ours knows these engines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ..ports import Answer, NodeReport
from .sights import NodeSight


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A registered engine as its row has it: `units` of `resource` on each of its `nodes`, on `devices` where they are known."""

    name: str
    nodes: tuple[str, ...]
    resource: str
    units: int
    devices: tuple[str, ...]
    state: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A registered engine, and what asking it told (None: nobody has)."""

    row: Registration
    answer: Answer | None


def standing(row: Registration, answer: Answer | None, stale_after_seconds: int, now: datetime) -> tuple[str, datetime]:
    """Its state and since when: ready while it answers, unready from the first failure on once that has lasted
    `stale_after_seconds`. Nobody having asked it says nothing: it stays what it was."""
    if answer is None:
        return row.state, row.since
    if answer.answered_at and now - answer.answered_at < timedelta(seconds=stale_after_seconds):
        return ("ready", row.since) if row.state == "ready" else ("ready", answer.answered_at)
    if answer.failed_since is None:
        return row.state, row.since
    return "unready", row.since if row.state == "unready" else max(row.since, answer.failed_since)


def with_own_units(
    sights: Mapping[str, NodeSight], rows: Iterable[Registration], reports: Mapping[str, NodeReport]
) -> dict[str, NodeSight]:
    """The sights with registered engines' units offered: to their hosts they are foreign, and the row takes them off again.

    What the host does not call foreign was never left out of what it offers, and is not added."""
    on_node: dict[str, list[Registration]] = {}
    for row in rows:
        for node in row.nodes:
            on_node.setdefault(node, []).append(row)
    return {
        name: _with_units(sight, on_node[name], reports[name]) if name in on_node and name in reports else sight
        for name, sight in sights.items()
    }


def _with_units(sight: NodeSight, rows: Sequence[Registration], report: NodeReport) -> NodeSight:
    named = {device: row.resource for row in rows for device in row.devices if report.foreign_devices.get(device) == row.resource}
    by_device = Counter(named.values())
    unnamed: Counter[str] = Counter()
    for row in rows:
        if not row.devices or not report.foreign_devices:
            unnamed[row.resource] += row.units
    left = Counter({name: units - by_device[name] for name, units in report.foreign.items()})
    own = by_device + Counter({name: min(units, left[name]) for name, units in unnamed.items()})
    return replace(
        sight,
        resources={name: sight.resources.get(name, 0) + own[name] for name in sight.resources.keys() | own.keys()},
        foreign={name: units - own[name] for name, units in report.foreign.items() if units > own[name]},
        foreign_devices={name: kind for name, kind in report.foreign_devices.items() if name not in named},
    )
