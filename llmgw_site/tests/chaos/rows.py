"""What the fleet begins with, written by a process of its own: `python -m llmgw_site.tests.chaos.rows`; prints an admin's token.

Three models on three hosts; two of them belong to a scope whose limit is less than their maxima together.
"""

from __future__ import annotations

from dataclasses import dataclass

import django

from llmgw_site.tests.e2e.rows import POOL, SIMULATOR, WINDOWS

UNITS_OF_A_HOST = 4
HOSTS = ("host-1", "host-2", "host-3")
SILENT_SECONDS, LOST_SECONDS = 10, 40
SCOPE, LIMIT = "team", 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A model as it is when nobody has edited it."""

    name: str
    units: int
    at_least: int
    at_most: int
    in_scope: bool


MODELS = (
    Kind(name="chat", units=1, at_least=2, at_most=5, in_scope=True),
    Kind(name="code", units=2, at_least=1, at_most=2, in_scope=True),
    Kind(name="sum", units=1, at_least=1, at_most=3, in_scope=False),
)


def seed() -> str:
    """An admin's token."""
    from capacity import services
    from capacity.models import PoolSettings
    from capacity.tests.factories import make_measurement, make_model, make_profile, make_scope
    from quotas.models import CapacityQuota, User
    from quotas.services import quota_save, token_create

    pool = services.pool_create(POOL, actor=None, reason="chaos")
    windows = WINDOWS | {"node_silent_seconds": SILENT_SECONDS, "node_lost_seconds": LOST_SECONDS}
    PoolSettings.objects.filter(pool=pool).update(**windows)
    team, rest = make_scope(SCOPE), make_scope("rest")
    for kind in MODELS:
        scope = team if kind.in_scope else rest
        model = make_model(kind.name, pool=pool, scope=scope, min_replicas=kind.at_least, max_replicas=kind.at_most)
        profile = make_profile(model, "small", units=kind.units, template="simulator", parameters=SIMULATOR)
        make_measurement(profile, max_concurrency=2)
    quota_save(CapacityQuota(scope=team, pool=pool, target="sim", limit=LIMIT), actor=None, reason="chaos")
    admin = User.objects.create(username="chaos", is_superuser=True)
    return token_create(admin, days=1)


if __name__ == "__main__":
    django.setup()
    print(seed())
