"""What the hosts report, laid over what is known: which replicas there are, in which state, and what has changed.

Pure: reports and rows in, an `Observed` out. The reconciler writes the changes; nothing here decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal

from ..ports import NodeReport, ReplicaReport
from .endings import ending_words
from .registered import Registered, standing, with_own_units
from .report_sanity import believable, machines_once, reported_once
from .sights import KnownNode, NodeSight, Patience, node_problem, sight, without_units

Intent = Literal["", "start", "undrain", "drain", "cancel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A replica as its row has it. `intent` is what was asked of its host and has not been seen done."""

    name: str
    model: str
    profile: str
    nodes: tuple[str, ...]
    state: str
    since: datetime
    intent: str = ""
    intent_at: datetime | None = None
    was_seen: bool = False
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """A replica that holds hardware, in the state the plan must count with."""

    name: str
    model: str
    profile: str
    nodes: tuple[str, ...]
    state: str
    since: datetime
    url: str = ""
    devices: tuple[str, ...] = ()
    generation: int = 0
    is_silent: bool = False
    intent: str = ""  # still open: ask again
    reported: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A replica that ended. `failed_start`: before it was ever ready; `exited`: by itself, after it had been; `message`: how, and
    its last words, empty where it was asked to."""

    name: str
    message: str
    failed_start: bool = False
    exited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """`lost`: replicas on lost hosts. They are neither present nor gone."""

    nodes: Mapping[str, NodeSight]
    present: tuple[Present, ...]
    gone: tuple[Gone, ...]
    lost: tuple[str, ...]
    problems: tuple[Mapping[str, str], ...]


def observe(
    known: Sequence[Known],
    nodes: Sequence[KnownNode],
    reports: Sequence[NodeReport],
    profiles: Iterable[tuple[str, str]],
    patience: Patience,
    now: datetime,
    registered: Mapping[str, Registered] = MappingProxyType({}),
) -> Observed:
    """Merges rows and reports. `profiles`: the (model, profile) pairs that exist; a reported replica of another one
    is left alone, and its units are taken off what its node offers. `registered`: of the rows in `known` those that no host
    reports, with what asking them told."""
    exists = set(profiles)
    problems: list[Mapping[str, str]] = []
    by_node = {report.node: report for report in believable(reports, problems)}
    sights = {node.name: sight(node, by_node.get(node.name), patience, now) for node in nodes}
    sights = with_own_units(sights, (found.row for found in registered.values()), by_node) if registered else sights
    problems += [problem for node in sights.values() if (problem := node_problem(node, now))]
    machines_once(by_node.values(), sights, problems)
    by_name = {row.name: row for row in known}
    owners = {row.name: row.nodes for row in known}
    reported = reported_once(by_node.values(), owners, sights, problems)
    present: list[Present] = []
    gone: list[Gone] = []
    for name, (replica, report) in reported.items():
        place_reported(name, replica, report, by_name.get(name), exists, sights, present, gone, problems)
    urls = {replica.url: name for name, (replica, _) in reported.items() if replica.url}
    for row in known:
        if row.name in registered and row.name not in reported:
            place_registered(row, registered[row.name], urls, sights, patience, now, present, problems)
        elif row.name not in reported:
            place_unreported(row, by_node, sights, patience, now, present, gone)
    ended_there = {end.name for end in gone}
    lost = tuple(row.name for row in known if row.name not in ended_there and is_on_lost_host(row, sights))
    return Observed(nodes=sights, present=tuple(present), gone=tuple(gone), lost=lost, problems=tuple(problems))


def is_on_lost_host(row: Known, sights: Mapping[str, NodeSight]) -> bool:
    return any(sights[name].is_lost for name in row.nodes if name in sights)


def place_reported(
    name: str,
    replica: ReplicaReport,
    report: NodeReport,
    row: Known | None,
    exists: set[tuple[str, str]],
    sights: dict[str, NodeSight],
    present: list[Present],
    gone: list[Gone],
    problems: list[Mapping[str, str]],
) -> None:
    if replica.state == "exited":
        if row:
            gone.append(ended(name, replica, row))
        return
    node = sights[report.node]
    if row is None and (replica.model, replica.profile) not in exists:
        sights[report.node] = without_units(node, replica)
        problems.append(
            {
                "code": "invalid_row",
                "subject": f"replica:{name}",
                "detail": f"runs on {report.node}, but nobody has a model “{replica.model}” with a profile “{replica.profile}”",
            }
        )
        return
    if not node.is_lost:
        present.append(overlay(seen(replica, node), row))


def ended(name: str, replica: ReplicaReport, row: Known) -> Gone:
    asked = row.intent in {"drain", "cancel"} or row.state == "draining"
    return Gone(
        name=name,
        message="" if asked else ending_words(replica.exit_code, replica.message, was_ready=replica.was_ready),
        failed_start=not asked and not replica.was_ready,
        exited=not asked and replica.was_ready,
    )


def seen(replica: ReplicaReport, node: NodeSight) -> Present:
    return Present(
        name=replica.name,
        model=replica.model,
        profile=replica.profile,
        nodes=replica.nodes,
        state=replica.state,
        since=replica.since,
        url=replica.url or "",
        devices=replica.devices,
        generation=replica.generation,
        is_silent=not node.is_ready,
    )


def overlay(replica: Present, row: Known | None) -> Present:
    """What was asked for counts as done from the moment it was recorded, so that it is not decided twice.

    Its host goes on to call it by the names it was started under; the row follows when a model or a profile is renamed."""
    if row is None:
        return replica
    replica = replace(replica, model=row.model, profile=row.profile)
    since = row.intent_at or replica.since
    if row.intent in {"drain", "cancel"} and replica.state != "draining":
        return replace(replica, state="draining", since=since, intent=row.intent)
    if row.intent == "undrain" and replica.state == "draining":
        return replace(replica, state="ready", since=since, intent=row.intent)
    return replica


def place_unreported(
    row: Known,
    by_node: Mapping[str, NodeReport],
    sights: Mapping[str, NodeSight],
    patience: Patience,
    now: datetime,
    present: list[Present],
    gone: list[Gone],
) -> None:
    """A row that no report has: not yet there, not heard of because its host is silent, or gone."""
    if is_on_lost_host(row, sights):
        return
    silent = any(not sights[name].is_ready for name in row.nodes if name in sights)
    forgotten = not row.was_seen and now - (row.intent_at or row.since) >= timedelta(seconds=patience.forget_start_seconds)
    waits = waits_for_report(row, by_node) or (row.intent == "start" and not row.was_seen)
    if silent or (waits and not forgotten):
        present.append(unreported(row, is_silent=silent))
    else:
        gone.append(missing(row))


def place_registered(
    row: Known,
    found: Registered,
    urls: Mapping[str, str],
    sights: Mapping[str, NodeSight],
    patience: Patience,
    now: datetime,
    present: list[Present],
    problems: list[Mapping[str, str]],
) -> None:
    """A row that no host of ours reports, as reading it told. On a silent host it stays what it was, on a lost one it is left
    out, as others are; at an address where a host runs one of ours it would be counted twice."""
    hosts = [sights[name] for name in row.nodes if name in sights]
    if any(host.is_lost for host in hosts):
        return
    if row.url in urls:
        detail = f"is registered at an address where {urls[row.url]} runs, which its host started; it is not counted: forget it"
        problems.append({"code": "invalid_row", "subject": f"replica:{row.name}", "detail": detail})
        return
    silent = any(not host.is_ready for host in hosts)
    answer = None if silent else found.answer
    state, since = standing(found.row, answer, patience.stale_after_seconds, now)
    present.append(replace(unreported(row, is_silent=silent), state=state, since=since, intent="", reported=True))
    if state == "unready" and not silent:
        why = answer.reason if answer and answer.reason else "nobody has asked it yet"
        detail = f"has not answered since {since:%Y-%m-%d %H:%M:%S} UTC: {why.rstrip('.')}; if it is gone for good, forget it"
        problems.append({"code": "engine_silent", "subject": f"replica:{row.name}", "detail": detail})


def missing(row: Known) -> Gone:
    asked = row.intent in {"drain", "cancel"} or row.state == "draining"
    if not row.was_seen:
        return Gone(name=row.name, message="" if asked else "it never came up on its host", failed_start=not asked)
    # no word of an exit: a host that was set up anew looks like this, and that is no fault of the engine
    return Gone(name=row.name, message="" if asked else "its host no longer has it")


def waits_for_report(row: Known, by_node: Mapping[str, NodeReport]) -> bool:
    """No host of it has reported since it was asked for (or ever)."""
    asked_at = row.intent_at or row.since
    reports = [by_node[name] for name in row.nodes if name in by_node]
    return not reports or any(report.at <= asked_at for report in reports)


def unreported(row: Known, *, is_silent: bool) -> Present:
    state = "draining" if row.intent in {"drain", "cancel"} else row.state
    return Present(
        name=row.name,
        model=row.model,
        profile=row.profile,
        nodes=row.nodes,
        state=state,
        since=row.intent_at or row.since if state == "draining" else row.since,
        url=row.url,
        is_silent=is_silent,
        intent=row.intent,
        reported=False,
    )
