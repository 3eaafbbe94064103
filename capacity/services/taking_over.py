"""Taking a pool over: after a backup was put back, on a copy that is to be the one, or when another installation is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Count

from quotas.models import User
from quotas.services.rows import exclusive, sign

from ..models import Action, LanguageModel, Lease, Replica
from ..observation.claims import waits_of
from ..ports import FleetDriver, NodeReport, Order
from ..rows import Problem

OPEN = (Action.State.PENDING, Action.State.SENT)
DROPPED = "dropped: the pool was taken over"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOver:
    """What a take-over changes, in numbers. `problems`: why it is needed; `running`: replicas at the hosts, `adopted` of them
    without a row; `missing`: rows of replicas that no host has; `modes`: mode → models that act by it from the next pass on."""

    pool: str
    problems: tuple[Problem, ...]
    installation: str
    installation_before: str
    generation: int
    generation_before: int
    hosts: int
    hosts_of_others: int
    running: int
    adopted: int
    missing: int
    actions: int
    intents: int
    modes: Mapping[str, int]


def take_over_preview(lease: Lease, reports: Sequence[NodeReport] | None, installation: str) -> TakeOver:
    """The numbers; ValidationError where the hosts' reports cannot be read, or where the pool is this installation's."""
    if reports is None:
        raise ValidationError({"pool": f"The reports of the hosts of {lease.pool} cannot be read: Redis does not answer."})
    waits = waits_of(lease, installation, reports)
    if not waits.problems:
        raise ValidationError({"pool": f"{lease.pool} needs no take-over: this installation acts on it."})
    there = {found.name for report in reports for found in report.replicas if found.state != "exited"}
    rows = set(present(lease).filter(is_registered=False).values_list("name", flat=True))
    modes = LanguageModel.objects.filter(pool=lease.pool_id).order_by().values_list("mode").annotate(Count("id"))
    return TakeOver(
        pool=lease.pool.name,
        problems=waits.problems,
        installation=installation,
        installation_before=lease.installation,
        generation=1 + max([lease.generation, waits.seen_generation, *(report.generation for report in reports)]),
        generation_before=lease.generation,
        hosts=len(reports),
        hosts_of_others=sum(1 for report in reports if report.installation not in {"", installation}),
        running=len(there),
        adopted=len(there - rows),
        missing=len(rows - there),
        actions=open_actions(lease).count(),
        intents=present(lease).exclude(intent="").count(),
        modes=dict(modes),
    )


def take_over(
    lease: Lease,
    driver: FleetDriver,
    *,
    installation: str,
    actor: User | None,
    reason: str,
    now: datetime,
) -> TakeOver:
    """Makes the pool this installation's, from a generation that no host has seen. What was asked for is dropped, what runs is
    taken as it is; models act in their own modes from the next pass on. ValidationError as in the preview, or without reason."""
    if not reason.strip():
        raise ValidationError({"reason": "Say why the pool is taken over."})
    reports = driver.observe(lease.pool.name)
    with exclusive():
        lease = Lease.objects.select_related("pool").select_for_update(of=("self",)).get(pk=lease.pk)
        done = take_over_preview(lease, reports, installation)
        drop(lease, {found.name for report in reports or () for found in report.replicas}, now)
        write(lease, done, actor, reason)
    tell(driver, done, reports or ())
    return done


def write(lease: Lease, done: TakeOver, actor: User | None, reason: str) -> None:
    """A pass that runs now finds another generation, and ends without a word."""
    lease.installation = done.installation
    lease.generation = lease.taken_over_at_generation = done.generation
    lease.seen_generation, lease.take_over_needed, lease.holder = 0, "", ""
    sign(lease, actor, reason)
    lease.save(
        update_fields=[
            "installation", "generation", "taken_over_at_generation", "seen_generation", "take_over_needed", "holder",
        ]
    )  # fmt: skip


def tell(driver: FleetDriver, done: TakeOver, reports: Sequence[NodeReport]) -> None:
    """Hosts hear of it at once, by an order that changes nothing: what the other installation asks from here on they refuse.

    A host that cannot be reached hears of it with its next order."""
    for report in reports:
        driver.apply(
            Order(
                op="cancel",
                pool=done.pool,
                generation=done.generation,
                replica=f"take-over-{done.generation}",
                model="",
                profile="",
                nodes=(report.node,),
                resource="",
                units=0,
                installation=done.installation,
                taken_over_at_generation=done.generation,
            )
        )


def drop(lease: Lease, reported: set[str], now: datetime) -> None:
    """Whatever was asked of hosts and is not seen done. A start that no host knows of was never done."""
    open_actions(lease).update(state=Action.State.DROPPED, resolved_at=now, message=DROPPED)
    asked = present(lease).exclude(intent="")
    never = [row.pk for row in asked.filter(intent="start", seen_at=None).only("name") if row.name not in reported]
    Replica.objects.filter(pk__in=never).update(
        state=Replica.State.GONE, since=now, gone_at=now, intent="", intent_at=None, message=DROPPED
    )
    asked.update(intent="", intent_at=None, drain_reason="", drained_for="")


def open_actions(lease: Lease) -> models.QuerySet[Action]:
    return Action.objects.filter(pool=lease.pool_id, state__in=OPEN)


def present(lease: Lease) -> models.QuerySet[Replica]:
    return Replica.objects.filter(pool=lease.pool_id, gone_at__isnull=True)
