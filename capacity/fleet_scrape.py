"""Reads the load of every engine that serves, in shards, into the store that the passes read."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Iterator, Sequence
from datetime import datetime

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

SHARD = 500
TURN_SECONDS = 10  # beyond what a reading may take; a killed worker holds nothing up for longer
SERVING = (Replica.State.READY, Replica.State.UNREADY, Replica.State.DRAINING)
NO_SERVER = "Its pool reads loads from a Prometheus server, and LLMGW_PROMETHEUS_URL names none."
LINK_LOCAL = (ipaddress.ip_network("169.254.0.0/16"), ipaddress.ip_network("fe80::/10"))


def allowed_networks() -> Sequence[Network]:
    """Addresses that are refused by default and allowed by the operator's setting."""
    return LINK_LOCAL if settings.ALLOW_LINK_LOCAL else ()


def shards(driver: FleetDriver) -> Iterator[tuple[str, list[tuple[str, str]], str]]:
    """(pool, [(replica, url)…], source) of at most 500 endpoints each; `source` is the pool's `load_source`.

    What hosts report comes first: a replica that became ready since the last pass is read before the next one."""
    sources = dict(Pool.objects.values_list("name", "settings__load_source"))
    by_pool: dict[str, dict[str, str]] = {name: {} for name in sources}
    rows = Replica.objects.filter(gone_at__isnull=True, state__in=SERVING).exclude(url="")
    for pool, name, url in rows.values_list("pool__name", "name", "url"):
        by_pool[pool][name] = url
    for pool, urls in by_pool.items():
        replicas = (replica for report in driver.observe(pool) or () for replica in report.replicas)
        urls.update({r.name: r.url for r in replicas if r.url and r.state in SERVING})
        endpoints = sorted(urls.items())
        for start in range(0, len(endpoints), SHARD):
            yield pool, endpoints[start : start + SHARD], sources[pool] or PoolSettings.LoadSource.ENGINES


def scrape_into_store(
    pool: str, endpoints: Sequence[tuple[str, str]], now: datetime, source: str = PoolSettings.LoadSource.ENGINES
) -> None:
    """Waits at most five seconds for all of them together; whoever did not answer keeps the last sample, which ages.

    Nothing where the former reading of this shard still runs: while one engine hangs, rounds that overlap would take every
    process of the worker, and passes would die in the queue."""
    turn = f"llmgw:scrape:{pool}:{endpoints[0][0]}"
    redis = redis_client()
    try:
        if not redis.set(turn, 1, nx=True, ex=TURN_SECONDS):
            return
    except RedisError:
        return  # nowhere to write to
    try:
        targets = [Target(replica=name, url=url) for name, url in endpoints]
        LoadStore(redis).write(pool, asyncio.run(read(targets, source)), now)
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
