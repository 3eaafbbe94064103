"""What hosts say that cannot be so, or that two of them say at once. Pure: reports in, believable ones and problems out.

Nothing of it stops a pass: what is not believed counts as none, and is named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..domain.products import resource_of
from ..ports import NodeReport, ReplicaReport
from .sights import NodeSight, without_units

Problem = Mapping[str, str]
Reported = tuple[ReplicaReport, NodeReport]

MOST_UNITS = 1_000_000
"""Of one class on one host: as many as can be typed in there."""


def believable(reports: Iterable[NodeReport], problems: list[Problem]) -> list[NodeReport]:
    """The reports without classes of more units than any host has; products that no table has are named."""
    found = []
    for report in reports:
        problems.extend(_unbelievable(report))
        problems.extend(_unknown_products(report))
        units = {name: count for name, count in report.resources.items() if count <= MOST_UNITS}
        found.append(report if len(units) == len(report.resources) else replace(report, resources=units))
    return found


def unread(faults: Mapping[str, str]) -> Iterator[Problem]:
    """Reports that are left out as a whole: node → what is wrong with each."""
    for node, fault in sorted(faults.items()):
        yield _problem("invalid_report", node, f"its report cannot be read, so that it counts as silent: {fault}")


def _unbelievable(report: NodeReport) -> Iterator[Problem]:
    for name, count in sorted(report.resources.items()):
        if count > MOST_UNITS:
            detail = f"says that it offers {count} of {name}, which no host has; they are counted as none"
            yield _problem("invalid_report", report.node, detail)
    for row in report.replicas:
        if row.units > MOST_UNITS:
            detail = f"says that {row.name} holds {row.units} of {row.resource}, which none takes; its profile's units count"
            yield _problem("invalid_report", report.node, detail)


def _unknown_products(report: NodeReport) -> Iterator[Problem]:
    for product in report.unknown_products:
        detail = f"has “{product[:100]}”, which the table of products does not have; its class is {resource_of(product)[0]}"
        yield _problem("unknown_product", report.node, detail)


# --- two nodes, one replica ------------------------------------------------------------------------------------------
def reported_once(
    reports: Iterable[NodeReport], owners: Mapping[str, Sequence[str]], sights: dict[str, NodeSight], problems: list[Problem]
) -> dict[str, Reported]:
    """Replica name → the report that counts. `owners`: name → nodes of its row; `sights` of the other hosts lose its units.

    A replica that spans hosts is reported by each of them, and is one."""
    told: dict[str, list[Reported]] = defaultdict(list)
    for report in reports:
        for row in report.replicas if report.node in sights else ():
            told[row.name].append((row, report))
    return {name: _one_of(name, rows, owners.get(name, ()), sights, problems) for name, rows in told.items()}


def _one_of(
    name: str, rows: list[Reported], nodes: Sequence[str], sights: dict[str, NodeSight], problems: list[Problem]
) -> Reported:
    if len(rows) == 1:
        return rows[0]

    def turn(told: Reported) -> tuple[bool, bool, bool, str]:
        row, report = told
        sight = sights[report.node]
        return row.state == "exited", sight.is_lost, report.node not in nodes, report.node

    first, *others = sorted(rows, key=turn)
    doubles = [told for told in others if told[0].state != "exited" and told[1].node not in first[0].nodes]
    for row, report in doubles:
        sights[report.node] = without_units(sights[report.node], row)
    if doubles:
        hosts = ", ".join([first[1].node, *(report.node for _, report in doubles)])
        detail = f"is reported by {hosts}: the one on {first[1].node} counts, and what it holds elsewhere is not offered"
        problems.append({"code": "reported_twice", "subject": f"replica:{name}", "detail": detail})
    return first


# --- two nodes, one machine ------------------------------------------------------------------------------------------
def machines_once(reports: Iterable[NodeReport], sights: dict[str, NodeSight], problems: list[Problem]) -> None:
    """Node workers that share a machine offer its cores and devices once: the first by name its own, the next what is left."""
    machines: dict[str, list[NodeReport]] = defaultdict(list)
    for report in sorted(reports, key=lambda report: report.node):
        if report.node in sights and report.shown.get("machine"):
            machines[report.shown["machine"]].append(report)
    for sharing in machines.values():
        if len(sharing) > 1:
            _cores_once([report for report in sharing if report.resources.get("cpu")], sights, problems)
            _devices_once(sharing, sights, problems)


def _devices_once(sharing: Sequence[NodeReport], sights: dict[str, NodeSight], problems: list[Problem]) -> None:
    """A device is the first's that names it; a copy that is foreign to the next one is not in its offer anyway."""
    seen: dict[str, str] = {}
    for report in sharing:
        doubles = [d for d in report.devices if d.id in seen and d.id not in report.foreign_devices]
        for device in doubles:
            node = sights[report.node]
            left = max(0, node.resources.get(device.resource, 0) - 1)
            sights[report.node] = replace(node, resources={**node.resources, device.resource: left})
        if doubles:
            others = ", ".join(sorted({seen[device.id] for device in doubles}))
            detail = (
                f"is on one machine with {others} and names {len(doubles)} of the same devices: they count there; "
                "start its worker with --no-devices"
            )
            problems.append(_problem("shared_machine", report.node, detail))
        for device in report.devices:
            seen.setdefault(device.id, report.node)


def _cores_once(sharing: Sequence[NodeReport], sights: dict[str, NodeSight], problems: list[Problem]) -> None:
    if len(sharing) > 1:
        cores = _cores(sharing)
        offered = sum(report.resources["cpu"] for report in sharing)
        if cores is not None and offered > cores:
            _share(sharing, cores, sights)
            names = ", ".join(report.node for report in sharing)
            detail = (
                f"{names} run on one machine of {cores} cores and offer {offered}: they count once, on the first; "
                "give each worker its share with --resource cpu=UNITS"
            )
            problems.append(_problem("shared_machine", sharing[0].node, detail))


def _cores(sharing: Sequence[NodeReport]) -> int | None:
    said = {report.shown.get("cores", "") for report in sharing}
    known = [int(text) for text in said if text.isascii() and text.isdigit() and len(text) < 8]
    return max(known, default=None)


def _share(sharing: Sequence[NodeReport], cores: int, sights: dict[str, NodeSight]) -> None:
    left = cores
    for report in sharing:
        node = sights[report.node]
        share = min(left, node.resources.get("cpu", 0))
        sights[report.node] = replace(node, resources={**node.resources, "cpu": share})
        left -= share


def _problem(code: str, node: str, detail: str) -> Problem:
    return {"code": code, "subject": f"node:{node}", "detail": detail}
