"""Whether a pool is this installation's to act on, of its lease and its hosts' reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..domain.installations import Claim, HostFence, seen_beyond, take_over_needed
from ..models import Lease
from ..ports import NodeReport
from ..rows import Problem, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Why nothing is acted on (empty: it is), and what hosts have seen beyond the lease's generation (0: nothing)."""

    problems: tuple[Problem, ...] = ()
    seen_generation: int = 0

    @property
    def sentences(self) -> str:
        """A line each."""
        return "\n".join(f"{found['subject'].partition(':')[2]}: {found['detail']}" for found in self.problems)


def waits_of(lease: Lease, installation: str, reports: Sequence[NodeReport]) -> Waits:
    claim, hosts = claim_of(lease, installation), fences(reports)
    problems = tuple({"code": p.code, "subject": p.subject, "detail": p.detail} for p in take_over_needed(claim, hosts))
    return Waits(problems=problems, seen_generation=seen_beyond(claim, hosts))


def claim_of(lease: Lease, installation: str) -> Claim:
    return Claim(
        pool=lease.pool.name,
        ours=installation,
        written=lease.installation,
        generation=lease.generation,
        taken_over_at_generation=lease.taken_over_at_generation,
        seen_generation=lease.seen_generation,
    )


def fences(reports: Sequence[NodeReport]) -> list[HostFence]:
    return [HostFence(node=r.node, installation=r.installation, generation=r.generation) for r in reports]


def only_advised(rows: Rows) -> Rows:
    """Nothing is acted on, and nothing that was asked for in another state of things is asked for again."""
    models = {name: replace(row, mode="paused" if row.mode == "paused" else "advise") for name, row in rows.models.items()}
    replicas = {name: replace(row, intent="", intent_at=None, give_back=False) for name, row in rows.replicas.items()}
    profiles = {key: replace(row, measure=False) for key, row in rows.profiles.items()}
    return replace(rows, models=models, replicas=replicas, profiles=profiles)
