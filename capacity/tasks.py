"""What Celery calls. Each task is a few lines around a function that is tried without Celery."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import structlog
from celery import Task, shared_task
from django.conf import settings
from django.db import DatabaseError
from redis.exceptions import RedisError

from quotas.models import Pool

from . import fleet_scrape, rollup, self_checking, unheard
from .measuring import worker
from .models import Lease
from .observation import endpoint_watch
from .reconcile import pools, run_pass
from .sources.store import LoadStore
from .store import beat_key, redis_client
from .wiring import deps

log = structlog.get_logger(__name__)

WEEK_SECONDS = 7 * 86_400
"""A sweep ends by itself; the limit of the passes would end it in its middle."""


class Asked(Task):
    """What beat asks again and again: a store that is away or locked now is one line in the log, and the next time comes."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        try:
            return super().__call__(*args, **options)
        except (DatabaseError, RedisError) as error:
            log.warning("task_failed", task=self.name, error=f"{type(error).__name__}: {error}".splitlines()[0])
            return None


@shared_task(base=Asked)
def reconcile_all() -> None:
    """One task a pool, so that pools run in parallel on as many workers as there are; late copies die in the queue."""
    rows = dict(Lease.objects.values_list("pool_id", "pool__name"))
    for pool_id in rows:
        reconcile_pool.apply_async((pool_id,), expires=settings.PASS_SECONDS)
    unheard.listen(redis_client(), rows.values(), settings.PASS_SECONDS, datetime.now(UTC))


@shared_task
def reconcile_pool(pool_id: int) -> None:
    for pool in pools(pk=pool_id):
        run_pass(deps(), pool, datetime.now(UTC))


@shared_task(base=Asked)
def scrape_all() -> None:
    for shard in fleet_scrape.shards(deps().driver):
        scrape_shard.apply_async((shard.source, shard.number, shard.endpoints), expires=settings.SCRAPE_SECONDS)


@shared_task
def scrape_shard(source: str, number: int, endpoints: list[tuple[str, str, str]]) -> None:
    shard = fleet_scrape.Shard(source=source, number=number, endpoints=endpoints)
    fleet_scrape.scrape_into_store(shard, datetime.now(UTC))


@shared_task(base=Asked)
def scrape_registered() -> None:
    endpoint_watch.watch_into_store(redis_client(), datetime.now(UTC))


@shared_task(base=Asked, acks_late=False, time_limit=WEEK_SECONDS, soft_time_limit=WEEK_SECONDS)
def run_sweeps() -> None:
    """In the worker for sweeps alone, one after another. Taken off the queue first: a second delivery finds nothing to do."""
    worker.run_queued()


@shared_task(base=Asked)
def watch_sweeps() -> None:
    worker.watch(datetime.now(UTC))


@shared_task(base=Asked)
def self_check() -> None:
    redis = redis_client()
    for pool in Pool.objects.order_by("name"):
        self_checking.check_pool(pool, deps().loads, LoadStore(redis), datetime.now(UTC))


@shared_task(base=Asked)
def beat_heartbeat() -> None:
    redis_client().set(beat_key(), datetime.now(UTC).isoformat(), ex=3600)


@shared_task(base=Asked, name="capacity.tasks.rollup")
def make_rollups() -> None:
    rollup.make_rollups(datetime.now(UTC))


@shared_task(base=Asked)
def prune() -> None:
    rollup.prune(datetime.now(UTC))
