"""Reads the load of every engine that serves, in shards, into the store that the passes read."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from django.conf import settings
from redis.exceptions import RedisError

from quotas.models import Pool

from .models import PoolSettings, Replica
from .ports import FleetDriver, Sample
from .sources.address import Network
from .sources.engines import Skipped, Target, scrape
from .sources.prometheus import Server, ask
from .sources.store import LoadStore
from .store import redis_client

Endpoint = tuple[str, str, str]

SHARD = 500
TURN_SECONDS = 10  # beyond what a reading may take; a killed worker holds nothing up for longer
SERVING = (Replica.State.READY, Replica.State.UNREADY, Replica.State.DRAINING)
NO_SERVER = "Its pool reads loads from a Prometheus server, and LLMGW_PROMETHEUS_URL names none."
LINK_LOCAL = (ipaddress.ip_network("169.254.0.0/16"), ipaddress.ip_network("fe80::/10"))


def allowed_networks() -> Sequence[Network]:
    """Addresses that are refused by default and allowed by the operator's setting."""
    return LINK_LOCAL if settings.ALLOW_LINK_LOCAL else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """At most 500 endpoints that are read together: (pool, replica, url). `source` is their pools' `load_source`, `number` the
    shard's own among those of that source."""

    source: str
    number: int
    endpoints: list[Endpoint]


def shards(driver: FleetDriver) -> Iterator[Shard]:
    """All endpoints of all pools, in as few shards as hold them: pools whose engines hang take one process, not one each.

    What hosts report comes first: a replica that became ready since the last pass is read before the next one."""
    by_source: dict[str, list[Endpoint]] = {}
    for pool, source, urls in urls_by_pool(driver):
        by_source.setdefault(source, []).extend((pool, name, url) for name, url in sorted(urls.items()))
    for source, endpoints in by_source.items():
        for number, start in enumerate(range(0, len(endpoints), SHARD)):
            yield Shard(source=source, number=number, endpoints=endpoints[start : start + SHARD])


def urls_by_pool(driver: FleetDriver) -> Iterator[tuple[str, str, dict[str, str]]]:
    """(pool, source, replica → url)."""
    sources = dict(Pool.objects.order_by("name").values_list("name", "settings__load_source"))
    by_pool: dict[str, dict[str, str]] = {name: {} for name in sources}
    rows = Replica.objects.filter(gone_at__isnull=True, state__in=SERVING).exclude(url="")
    for pool, name, url in rows.values_list("pool__name", "name", "url"):
        by_pool[pool][name] = url
    for pool, urls in by_pool.items():
        replicas = (replica for report in driver.observe(pool) or () for replica in report.replicas)
        urls.update({r.name: r.url for r in replicas if r.url and r.state in SERVING})
        yield pool, sources[pool] or PoolSettings.LoadSource.ENGINES, urls


def scrape_into_store(shard: Shard, now: datetime) -> None:
    """Waits at most five seconds for all of them together; whoever did not answer keeps the last sample, which ages.

    Nothing where the former reading of this shard still runs: while one engine hangs, rounds that overlap would take every
    process of the worker, and passes would die in the queue."""
    turn = f"llmgw:scrape:{settings.INSTALLATION_ID}:{shard.source}:{shard.number}"
    redis = redis_client()
    try:
        if not redis.set(turn, 1, nx=True, ex=TURN_SECONDS):
            return
    except RedisError:
        return  # nowhere to write to
    try:
        found = asyncio.run(read([Target(replica=name, url=url) for _, name, url in shard.endpoints], shard.source))
        for pool, group in groupby(shard.endpoints, key=itemgetter(0)):
            LoadStore(redis).write(pool, {name: found[name] for _, name, _ in group if name in found}, now)
    finally:
        with contextlib.suppress(RedisError):
            redis.delete(turn)


async def read(targets: Sequence[Target], source: str) -> dict[str, Sample | Skipped]:
    """Each target's load from where its pool's settings say."""
    if source != PoolSettings.LoadSource.PROMETHEUS:
        return await scrape(targets, allowed_networks=allowed_networks())
    if not settings.PROMETHEUS_URL:
        return {target.replica: Skipped(NO_SERVER) for target in targets}
    return await ask(Server(url=settings.PROMETHEUS_URL, token=settings.PROMETHEUS_TOKEN), targets)
