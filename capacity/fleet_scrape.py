"""Reads the load of every engine that serves, in shards, into the store that the passes read."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from django.conf import settings

from .models import Replica
from .sources.engines import Target, scrape
from .sources.store import LoadStore
from .store import redis_client

SHARD = 500
SERVING = (Replica.State.READY, Replica.State.UNREADY, Replica.State.DRAINING)
LINK_LOCAL = (ipaddress.ip_network("169.254.0.0/16"), ipaddress.ip_network("fe80::/10"))


def shards() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """(pool, [(replica, url)…]) of at most 500 endpoints each, from one query."""
    rows = Replica.objects.filter(gone_at__isnull=True, state__in=SERVING).exclude(url="")
    by_pool: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for pool, name, url in rows.order_by("name").values_list("pool__name", "name", "url"):
        by_pool[pool].append((name, url))
    for pool, endpoints in by_pool.items():
        for start in range(0, len(endpoints), SHARD):
            yield pool, endpoints[start : start + SHARD]


def scrape_into_store(pool: str, endpoints: Sequence[tuple[str, str]], now: datetime) -> None:
    """Waits at most five seconds for all of them together; whoever did not answer keeps the last sample, which ages."""
    allowed = LINK_LOCAL if settings.ALLOW_LINK_LOCAL else ()
    targets = [Target(replica=name, url=url) for name, url in endpoints]
    LoadStore(redis_client()).write(pool, asyncio.run(scrape(targets, allowed_networks=allowed)), now)
