"""The one place where the pass gets its driver, its sources and its views."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from celery import current_app
from django.conf import settings
from redis import Redis

from quotas.domain.last_good import LastGood

from .drivers.process import ProcessDriver
from .last_good_views import Measurements, Policies, views
from .ports import AnswerSource, FleetDriver, MetricSource
from .sources.answer_store import AnswerStore
from .sources.push_store import PushStore
from .sources.store import LoadStore
from .store import redis_client
from .token_rates import TokenRates


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    """What a pass works with. `holder` names this process in the lease, `installation` whose it is."""

    driver: FleetDriver
    loads: MetricSource
    answers: AnswerSource
    pushes: PushStore
    policies: LastGood[Policies]
    measurements: LastGood[Measurements]
    rates: TokenRates
    holder: str
    installation: str


def send(task_name: str, kwargs: dict[str, Any], queue: str, expires: int) -> None:
    # a pass waits for nobody: a broker that is away is an outcome, and the next pass asks again
    current_app.send_task(task_name, kwargs=kwargs, queue=queue, expires=expires, retry=False)


def make_deps(redis: Redis, **overrides: Any) -> Deps:
    policies, measurements = views(redis, settings.INSTALLATION_ID)
    values: dict[str, Any] = {
        "driver": ProcessDriver(redis=redis, send=send),
        "loads": LoadStore(redis),
        "answers": AnswerStore(redis),
        "pushes": PushStore(redis),
        "policies": policies,
        "measurements": measurements,
        "rates": TokenRates(),
        "installation": settings.INSTALLATION_ID,
        "holder": f"{socket.gethostname()}:{os.getpid()}",
    }
    return Deps(**{**values, **overrides})


@lru_cache(maxsize=1)
def deps() -> Deps:
    """This process's own, made once: the views live as long as the process. (A fork makes its own: nothing is made at import.)"""
    return make_deps(redis_client())
