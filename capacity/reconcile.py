"""One pass of one pool. The only file that knows the order: lease, observe, plan, brake, record, act, report."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import DatabaseError

from . import lease as leases
from .act import act
from .braking import hold
from .domain.plan import plan
from .domain.types import Plan
from .models import Lease, Node
from .ports import NodeReport
from .recording.record import LeaseLost, Turn, is_quiet, record
from .recording.watches import with_bases
from .snapshot import Built, build
from .wiring import Deps

log = structlog.get_logger(__name__)
GAP_INTERVALS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PassReport:
    """What became of a pass. `outcome`: `done`, `held` (another has the lease), `lease_lost`,
    `failed` (the database did not answer)."""

    pool: str
    outcome: str
    generation: int | None = None
    seconds: float = 0.0
    sent: int = 0
    withheld: int = 0
    plan: Plan | None = None
    error: str = ""


def pools(**which: Any) -> Sequence[Lease]:
    """The leases of the pools, each with its pool, settings and brake: one query."""
    return Lease.objects.select_related("pool__settings", "pool__brake").filter(
        **{f"pool__{key}": value for key, value in which.items()}
    )


def run_pass(deps: Deps, lease: Lease, now: datetime) -> PassReport:
    """A whole pass; every fault of a store ends in a report and never in an exception."""
    started = time.monotonic()
    with structlog.contextvars.bound_contextvars(pool=lease.pool.name):
        try:
            with uncollected():
                report = _pass(deps, lease, now, started)
        except LeaseLost:
            report = PassReport(pool=lease.pool.name, outcome="lease_lost", seconds=time.monotonic() - started)
        except DatabaseError as error:
            report = PassReport(pool=lease.pool.name, outcome="failed", error=f"{type(error).__name__}: {error}")
        _say(report)
    return report


@contextmanager
def uncollected() -> Iterator[None]:
    """The search for cycles pauses: a pass makes a hundred thousand values that all live to its end, and none of them is one."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _pass(deps: Deps, lease: Lease, now: datetime, started: float) -> PassReport:
    generation = leases.take(lease, deps.holder, now)
    if generation is None:
        return PassReport(pool=lease.pool.name, outcome="held")
    quiet = False
    try:
        since = unbroken_since(lease, now)
        turn = Turn(
            installation=deps.installation,
            lease=lease,
            holder=deps.holder,
            generation=generation,
            now=now,
            unbroken_since=since,
            started=started,
        )
        built = build(deps, lease, now, since)
        if built.newcomers and register(lease, built.newcomers):
            built = build(deps, lease, now, since)
        held = hold(lease, built, plan(built.snapshot, built.policy), now)
        built = with_bases(deps, lease.pool.name, built, held.plan)
        actions = record(turn, built, held)
        quiet = is_quiet(built, held.plan)
        # a pulled brake asks for nothing again either: what waits to be sent waits on
        sent = 0 if quiet or held.is_on else act(deps.driver, turn, built, actions)
    finally:
        if not quiet:
            leases.release(lease.id, deps.holder, generation)
    seconds = time.monotonic() - started
    return PassReport(
        pool=lease.pool.name,
        outcome="done",
        generation=generation,
        seconds=seconds,
        sent=sent,
        withheld=len(held.withheld),
        plan=held.plan,
    )


def advise(deps: Deps, lease: Lease, now: datetime) -> tuple[Built, Plan]:
    """What a pass would decide now. Takes no lease, writes nothing, does nothing."""
    built = build(deps, lease, now, unbroken_since(lease, now))
    return built, plan(built.snapshot, built.policy)


def unbroken_since(lease: Lease, now: datetime) -> datetime:
    """Since when passes came without a gap: demand was watched all that time."""
    gap = timedelta(seconds=settings.PASS_SECONDS * GAP_INTERVALS)
    if lease.unbroken_since is None or lease.last_pass_at is None or now - lease.last_pass_at > gap:
        return now
    return lease.unbroken_since


def register(lease: Lease, reports: Sequence[NodeReport]) -> bool:
    """Hosts that report for this pool and are not written down yet: whoever reaches Redis with its password belongs.

    False where their names are taken by nodes of other pools, or are none: those reports are not listened to."""
    taken = set(Node.objects.filter(name__in=[r.node for r in reports]).values_list("name", flat=True))
    new = [r for r in reports if r.node not in taken and is_name(r.node)]
    Node.objects.bulk_create(Node(name=r.node, pool=lease.pool, resources=dict(r.resources), reported_at=r.at) for r in new)
    return bool(new)


def is_name(text: str) -> bool:
    """A name that a form would take too, in the bounds of its column."""
    try:
        Node._meta.get_field("name").clean(text, None)
    except ValidationError:
        return False
    return True


def _say(report: PassReport) -> None:
    numbers = {
        "outcome": report.outcome,
        "generation": report.generation,
        "ms": round(report.seconds * 1000),
        "sent": report.sent,
        "withheld": report.withheld,
    }
    if report.outcome == "failed":
        log.warning("pass", **numbers, error=report.error)
    else:
        log.info("pass", **numbers)
