"""Asks registered engines whether they answer: no host of ours watches them."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from datetime import datetime

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from quotas.models import Pool

from ..fleet_scrape import TURN_SECONDS, allowed_networks
from ..models import Replica
from ..sources.answer_store import AnswerStore
from ..sources.answers import ask


def registered_urls() -> dict[str, dict[str, str]]:
    """Pool → engine → URL, for each pool: one without any drops what was kept of those it had."""
    found: dict[str, dict[str, str]] = defaultdict(dict, {name: {} for name in Pool.objects.values_list("name", flat=True)})
    rows = Replica.objects.filter(is_registered=True, gone_at__isnull=True).exclude(url="")
    for pool, name, url in rows.values_list("pool__name", "name", "url"):
        found[pool][name] = url
    return found


def watch_into_store(redis: Redis, now: datetime) -> None:
    """One round over all pools at once, within five seconds. Nothing while the former one is at work."""
    turn = f"llmgw:registered-turn:{settings.INSTALLATION_ID}"
    with contextlib.suppress(RedisError):  # nowhere to write to: nobody is asked
        if redis.set(turn, 1, nx=True, ex=TURN_SECONDS):
            try:
                a_round(redis, now)
            finally:
                redis.delete(turn)


def a_round(redis: Redis, now: datetime) -> None:
    by_pool = registered_urls()
    urls = {name: url for found in by_pool.values() for name, url in found.items()}
    said = asyncio.run(ask(urls, allowed_networks=allowed_networks())) if urls else {}
    for pool, found in by_pool.items():
        AnswerStore(redis).write(pool, {name: said[name] for name in found}, now)
