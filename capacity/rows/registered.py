"""The registered engines of a pool, laid beside what asking them told."""

from __future__ import annotations

from ..observation.registered import Registered, Registration
from ..ports import AnswerSource
from .types import ProfileRow, ReplicaRow, Rows


def registered(rows: Rows, source: AnswerSource, pool: str) -> dict[str, Registered]:
    """By name. The store is asked only where there are any; where it cannot be read, nobody has asked them."""
    found = [row for row in rows.replicas.values() if row.is_registered]
    answers = (source.answers(pool) if found else None) or {}
    return {
        row.name: Registered(row=registration(row, rows.profiles[row.model, row.profile]), answer=answers.get(row.name))
        for row in found
    }


def registration(row: ReplicaRow, profile: ProfileRow) -> Registration:
    return Registration(
        name=row.name,
        nodes=row.nodes,
        resource=profile.resource,
        units=profile.units,
        devices=row.devices,
        state=row.state,
        since=row.since,
    )
