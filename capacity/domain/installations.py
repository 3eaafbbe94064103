"""Whose pool it is: a copy of the database, another installation at the hosts, or an older backup only advises until a person
takes the pool over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from shlex import quote

from capacity.domain.phrases import names
from quotas.domain.types import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the database says of a pool, and who reads it. `ours`: this installation's id; `written`: that of the one that wrote
    the pool (empty: none yet); `seen_generation`: what hosts once had seen beyond the database's own generation (0: nothing)."""

    pool: str
    ours: str
    written: str
    generation: int
    taken_over_at_generation: int = 0
    seen_generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFence:
    """What one host says: the highest generation that it obeyed, and of which installation (empty: it does not say)."""

    node: str
    installation: str
    generation: int


def seen_beyond(claim: Claim, hosts: Iterable[HostFence]) -> int:
    """The highest generation that hosts obeyed in our name beyond the database's own; 0 where there is none.

    It is kept until the take-over: passes go on counting, and would overtake it without anybody having looked."""
    ahead = (host.generation for host in hosts if host.installation in {"", claim.ours} and host.generation > claim.generation)
    return max(claim.seen_generation, *ahead, 0)


def others(claim: Claim, hosts: Iterable[HostFence]) -> list[HostFence]:
    """Hosts that obey another installation, beyond the generation at which this one took over."""
    return [
        host for host in hosts if host.installation not in {"", claim.ours} and host.generation >= claim.taken_over_at_generation
    ]


def take_over_needed(claim: Claim, hosts: Sequence[HostFence]) -> tuple[Problem, ...]:
    """Why nothing may be acted on in the pool, each with what to do; empty where the pool is ours."""
    found = [*_copied(claim), *_obeyed(claim, others(claim, hosts))]
    seen = seen_beyond(claim, hosts)
    if seen:
        detail = (
            f"its hosts have seen generation {seen}, which this database had not come to: an older state was put back. Models "
            f"are only advised until manage.py take_over --pool {quote(claim.pool)}; what runs meanwhile is adopted."
        )
        found.append(Problem(code="older_backup", subject=f"pool:{claim.pool}", detail=detail))
    return tuple(found)


def _copied(claim: Claim) -> list[Problem]:
    if claim.written in {"", claim.ours}:
        return []
    detail = (
        f"its database was written by installation {claim.written}, and this is {claim.ours}: a copy, or a machine of that one "
        f"without its LLMGW_INSTALLATION_ID. Models are only advised. If the other one is to go, stop it and run "
        f"manage.py take_over --pool {quote(claim.pool)}."
    )
    return [Problem(code="copied_database", subject=f"pool:{claim.pool}", detail=detail)]


def _obeyed(claim: Claim, hosts: Sequence[HostFence]) -> list[Problem]:
    """One problem for each other installation, with the hosts that obey it."""
    found = []
    for other in sorted({host.installation for host in hosts}):
        nodes = sorted(host.node for host in hosts if host.installation == other)
        subject = f"node:{nodes[0]}" if len(nodes) == 1 else f"pool:{claim.pool}"
        who = "it obeys" if len(nodes) == 1 else f"{names(nodes)} obey"
        detail = (
            f"{who} installation {other}, and this is {claim.ours}: models of {claim.pool} are only advised. If the other one "
            f"is to go, stop it and run manage.py take_over --pool {quote(claim.pool)}."
        )
        found.append(Problem(code="another_installation", subject=subject, detail=detail))
    return found
