"""Who still uses a model: what an operator reads before it is switched off or deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from .. import clock
from ..domain.phrases import names, number
from ..models import LanguageModel, Replica
from ..sources.gateway import FORGET_AFTER_SECONDS, Push
from ..sources.push_store import PushStore
from ..store import redis_client

RECENT = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pusher:
    """A gateway whose newest push names the model or a replica of it, and whose account that is."""

    source: str
    account: str
    at: datetime
    in_flight: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """`pushers` None: Redis does not answer, so nobody knows. `last_arrival_at` None: no gateway ever told of one, or nobody
    knows. `replicas`: those that would end, as name and state; `kept`: those that run on, for they are stopped elsewhere."""

    model: str
    mode: str
    scope: str
    last_arrival_at: datetime | None
    pushers: tuple[Pusher, ...] | None
    replicas: tuple[tuple[str, str], ...]
    kept: tuple[str, ...]


def use_of(model: LanguageModel, now: datetime) -> Use:
    """Read now: the database, and Redis."""
    present = list(Replica.objects.filter(model=model, gone_at__isnull=True).order_by("name"))
    pushed = PushStore(redis_client()).read(model.pool.name)
    mine = {replica.name for replica in present}
    arrivals = [pushed.arrivals.get(model.name) if pushed else None, model.woken_at]
    return Use(
        model=model.name,
        mode=model.mode,
        scope=model.scope.name if model.scope else "",
        last_arrival_at=max((at for at in arrivals if at is not None), default=None),
        pushers=tuple(pushers(model.name, mine, pushed.pushes, now)) if pushed else None,
        replicas=tuple((replica.name, replica.state) for replica in present if replica.removable),
        kept=tuple(replica.name for replica in present if not replica.removable),
    )


def pushers(model: str, replicas: set[str], pushes: Iterable[Push], now: datetime) -> Iterator[Pusher]:
    for push in sorted(pushes, key=lambda push: push.source):
        said, own = push.models.get(model), push.replicas.keys() & replicas
        if (said is None and not own) or (now - push.at).total_seconds() > FORGET_AFTER_SECONDS:
            continue
        in_flight = sum(push.replicas[name] for name in own)
        held = (said.held or 0) if said else 0
        yield Pusher(source=push.source, account=push.account, at=push.at, in_flight=in_flight, held=held)


def is_used(use: Use, now: datetime) -> bool:
    """Whether requests are known to have come within the last day, or are there now."""
    working = any(found.in_flight or found.held for found in use.pushers or ())
    return working or (use.last_arrival_at is not None and now - use.last_arrival_at < RECENT)


def sentences_of(use: Use, now: datetime) -> list[str]:
    """The same for page, command and API."""
    return [arrival(use, now), *gateways(use, now), owner(use), *ends(use)]


def arrival(use: Use, now: datetime) -> str:
    if use.last_arrival_at is None:
        known = "No gateway has told of a request for it." if use.pushers is not None else ""
        return known or "When a request came last is not known: Redis does not answer."
    return f"The last request came {clock.age(use.last_arrival_at, now)} ago, at {clock.exact(use.last_arrival_at)}."


def gateways(use: Use, now: datetime) -> Iterator[str]:
    if use.pushers is None:
        yield "Which gateways push for it is not known: Redis does not answer."
    elif not use.pushers:
        yield "No gateway pushes for it now."
    for found in use.pushers or ():
        who = f"{found.source} (account {found.account})" if found.account else found.source
        told = f"{number(found.in_flight, 'request')} in flight, {found.held} held, {clock.age(found.at, now)} ago"
        yield f"Gateway {who} pushes for it: {told}."


def owner(use: Use) -> str:
    return f"It belongs to {use.scope}." if use.scope else "It belongs to no scope."


def ends(use: Use) -> Iterator[str]:
    told = [f"{name} ({state})" for name, state in use.replicas]
    which = f": {names(told)}" if told else ""
    many = (
        f"{number(len(told), 'replica')} would be drained and ended, one after another, "
        f"the last once nobody has asked for it for a while{which}."
    )
    yield many if told else "No replica of it is there to be ended."
    if use.replicas and use.mode != "auto":
        yield f"In mode {use.mode} nothing is ended by itself: switch it to auto, or end them where they run."
    if use.kept:
        yield f"{names(use.kept)} run on: they are stopped where they were started."
