"""Writes which profiles rest on which nodes; for how long is decided in `capacity.domain.backoff`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..domain.backoff import CLEARED_AFTER, Failure, after, rest
from ..domain.types import Backoff as Resting
from ..models import Backoff
from ..observation.observe import Observed
from ..rows import BackoffRow, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """A back-off as it stands after this pass's failures."""

    profile_id: int
    node: str
    failures: int
    exits: tuple[str, ...]
    until: datetime
    message: str


def failures(rows: Rows, observed: Observed | None) -> Iterator[Failure]:
    """What ended by itself, told by the hosts in this pass."""
    for ended in observed.gone if observed else ():
        row = rows.replicas[ended.name]
        if ended.failed_start or ended.exited:
            for node in row.nodes:
                yield Failure(
                    model=row.model, profile=row.profile, node=node, message=ended.message, failed_start=ended.failed_start
                )


def rests(failures: Iterable[Failure], rows: Rows, now: datetime) -> tuple[Rest, ...]:
    """What has to rest now, and until when: known before the plan is made, so that nothing is started into a failure.

    Several starts of a profile that fail on a node in one pass are one failure; exits count one by one."""
    held = {(row.profile_id, row.node): row for row in rows.backoffs}
    by_place: dict[tuple[int, str], list[Failure]] = {}
    for failure in failures:
        profile = rows.profiles.get((failure.model, failure.profile))
        if profile and failure.node in rows.nodes:
            by_place.setdefault((profile.id, failure.node), []).append(failure)
    return tuple(_rest(place, found, held.get(place), now) for place, found in sorted(by_place.items()))


def backoffs(rows: Rows, rested: Sequence[Rest]) -> tuple[Resting, ...]:
    """Those on record, and in their place those that this pass's failures began."""
    names = {row.id: key for key, row in rows.profiles.items()}
    until = {(row.profile_id, row.node): row.until for row in rows.backoffs if row.profile_id in names}
    until.update({(found.profile_id, found.node): found.until for found in rested})
    return tuple(
        Resting(model=names[profile][0], profile=names[profile][1], node=node, until=at) for (profile, node), at in until.items()
    )


def _rest(place: tuple[int, str], found: Sequence[Failure], row: BackoffRow | None, now: datetime) -> Rest:
    count, exits = (row.failures, list(row.exits)) if row else (0, [])
    until = row.until if row else now
    starts = [failure for failure in found if failure.failed_start]
    for failure in [*starts[:1], *(f for f in found if not f.failed_start)]:
        count, exits, begins = after(failure, count, exits, now)
        until = now + rest(count) if begins else until
    return Rest(
        profile_id=place[0], node=place[1], failures=count, exits=tuple(exits), until=until, message=found[-1].message[:2000]
    )


def write(rested: Iterable[Rest], rows: Rows) -> None:
    for found in rested:
        values = {"failures": found.failures, "exits": list(found.exits), "until": found.until, "message": found.message}
        node_id = rows.nodes[found.node].id
        Backoff.objects.update_or_create(profile_id=found.profile_id, node_id=node_id, defaults=values)


def clear(observed: Observed | None, rows: Rows, rested: Iterable[Rest], now: datetime) -> None:
    """Ten ready minutes of a profile on a node end its back-off."""
    if not rows.backoffs or observed is None:
        return
    failed = {(found.profile_id, found.node) for found in rested}
    well = {
        (rows.profiles[p.model, p.profile].id, node)
        for p in observed.present
        if p.state == "ready" and now - p.since >= CLEARED_AFTER and (p.model, p.profile) in rows.profiles
        for node in p.nodes
    }
    over = [row.id for row in rows.backoffs if (row.profile_id, row.node) in well - failed]
    if over:
        Backoff.objects.filter(pk__in=over).delete()
