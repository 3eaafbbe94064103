"""What is wrong in a snapshot and stops nothing: listed, each with its subject and a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from capacity.domain.load import Tally
from capacity.domain.offer import capacity_of
from capacity.domain.types import Replica, Snapshot
from quotas.domain.entitlement import problems_of as shared_out
from quotas.domain.policy import QuotaPolicy
from quotas.domain.types import Problem


def problems_of(snapshot: Snapshot, tallies: Sequence[Tally], policy: QuotaPolicy) -> tuple[Problem, ...]:
    """All problems, by code and subject."""
    found = [
        *policy.problems,
        *_shared_out(snapshot, policy),
        *_guarantees_on_paths(snapshot),
        *_no_owner(tallies),
        *_unknown_nodes(snapshot, tallies),
        *(problem for counted in tallies for problem in _hotspots(counted)),
    ]
    return tuple(sorted(found, key=lambda problem: (problem.code, problem.subject, problem.detail)))


def _shared_out(snapshot: Snapshot, policy: QuotaPolicy) -> Iterator[Problem]:
    """`cut` and `scaled`, once a scope, with the numbers of each class."""
    if snapshot.scopes is None or snapshot.quotas is None:
        return
    capacity = capacity_of(snapshot)
    classes = _classes(snapshot)
    details: dict[tuple[str, str], list[str]] = {}
    for resource in sorted({row.target for row in snapshot.quotas if row.guarantee is not None and row.target in classes}):
        units = None if capacity is None else capacity.get(resource, 0)
        for problem in shared_out(policy.entitlements(resource, units)):
            details.setdefault((problem.code, problem.subject), []).append(problem.detail)
    for (code, subject), texts in details.items():
        yield Problem(code=code, subject=subject, detail="; ".join(texts))


def _classes(snapshot: Snapshot) -> set[str]:
    """What nodes offer and profiles take."""
    offered = {resource for node in snapshot.nodes or () for resource in node.resources}
    return offered | {profile.resource for profile in snapshot.profiles}


def _guarantees_on_paths(snapshot: Snapshot) -> Iterator[Problem]:
    """A guarantee is for a class that nodes offer or profiles take; without the nodes nobody can tell."""
    if snapshot.nodes is None:
        return
    classes = _classes(snapshot)
    targets: dict[str, list[str]] = {}
    for row in snapshot.quotas or () if snapshot.scopes is not None else ():
        if row.guarantee is not None and row.target not in classes:
            targets.setdefault(row.scope, []).append(row.target)
    for scope, names in targets.items():
        detail = f"no node offers and no profile takes {', '.join(sorted(names))}; that guarantee is ignored"
        yield Problem(code="guarantee_not_leaf", subject=f"scope:{scope}", detail=detail)


def _no_owner(tallies: Iterable[Tally]) -> Iterator[Problem]:
    for counted in tallies:
        if counted.model.scope is None:
            detail = "belongs to no scope: counted against nobody and entitled to nothing"
            yield Problem(code="no_owner", subject=f"model:{counted.model.name}", detail=detail)


def _unknown_nodes(snapshot: Snapshot, tallies: Iterable[Tally]) -> Iterator[Problem]:
    """Replicas on nodes that are not listed, or on another number than their profile takes."""
    if snapshot.nodes is None:
        return
    known = {node.name for node in snapshot.nodes}
    hosts = {counted.model.name: {name: r.profile.hosts for name, r in counted.ratings.items()} for counted in tallies}
    for replica in snapshot.replicas or ():
        nodes, wanted = replica.nodes, hosts[replica.model][replica.profile]
        if len(nodes) == 1 == wanted and nodes[0] in known:
            continue
        detail = _misplaced(replica, wanted, known)
        if detail is not None:
            yield Problem(code="unknown_node", subject=f"replica:{replica.name}", detail=detail)


def _misplaced(replica: Replica, hosts: int, known: Set[str]) -> str | None:
    if replica.state == "starting" and not replica.nodes:
        return None
    missing = sorted(name for name in replica.nodes if name not in known)
    if missing:
        are = "its node {} is" if len(missing) == 1 else "its nodes {} are"
        return f"{are.format(', '.join(missing))} not listed; it still counts for quotas"
    if len(replica.nodes) != hosts:
        return f"it names {len(replica.nodes)} nodes and its profile takes {hosts}; it still counts for quotas"
    return None


def _hotspots(counted: Tally) -> Iterator[Problem]:
    """One replica over its own measured concurrency while the total fits is a matter of routing."""
    if counted.demand_low > counted.capacity_ready:
        return
    loads = counted.loads
    limits = {name: rating.concurrency for name, rating in counted.ratings.items()}
    for replica in counted.ready:
        load, concurrency = loads[replica.name], limits[replica.profile]
        if load is not None and concurrency is not None and load > concurrency:
            detail = f"{load} requests on a replica measured to serve {concurrency}, while the total fits: look at the routing"
            yield Problem(code="hotspot", subject=f"replica:{replica.name}", detail=detail)
