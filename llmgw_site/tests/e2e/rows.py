"""What the running site starts with, written by a process of its own: `python -m llmgw_site.tests.e2e.rows NAME`.

`seed`: a model `chat` whose simulators serve two requests each, one that engines of bad manners serve for each manner, one of a
small real engine (all off), and a token of a gateway, which is printed. `hosts`: two models of different sizes for hosts that
write themselves down. `operator`: a token of somebody who sees everything. `measurer`: somebody who signs in and measures.
"""

from __future__ import annotations

import sys

import django

POOL, NODE = "e2e", "e2e-1"
CAPACITY = 2
MANNERS = ("hang", "html", "big", "nan")
LLAMA = "smollm2"
# off until a test turns them on
ASIDE = (*MANNERS, LLAMA)
# seconds instead of minutes: what takes an hour elsewhere is over while a test looks at it
WINDOWS = {
    "down_window_seconds": 1,
    "stale_after_seconds": 20,
    "start_timeout_seconds": 60,
    "unready_grace_seconds": 15,
    "drain_timeout_seconds": 3,
    "idle_seconds": 60,
    "wake_seconds": 30,
    "node_silent_seconds": 20,
    "node_lost_seconds": 90,
    # what these tests do in a minute would be held by the brake, which has tests of its own
    "brake_stops": 1000,
    "brake_starts": 1000,
}
LOST_SOON = {"node_silent_seconds": 10, "node_lost_seconds": 30}
SIMULATOR = {"capacity": str(CAPACITY), "ttft_ms": "50", "tpot_ms": "50", "load_seconds": "0"}


def seed() -> str:
    """A gateway's token."""
    from capacity import services
    from capacity.models import PoolSettings
    from capacity.tests.factories import make_measurement, make_model, make_node, make_profile
    from quotas.services import service_account, token_create

    pool = services.pool_create(POOL, actor=None, reason="tests")
    PoolSettings.objects.filter(pool=pool).update(**WINDOWS)
    make_node(NODE, pool=pool, resources={"sim": 16})
    chat = make_profile(
        make_model("chat", pool=pool, min_replicas=1, max_replicas=4),
        "small",
        template="simulator",
        parameters=SIMULATOR,
    )
    make_measurement(chat, max_concurrency=CAPACITY)
    for manner in MANNERS:
        profile = make_profile(make_model(manner, pool=pool, min_replicas=0, max_replicas=0), "bad", template=manner)
        make_measurement(profile, max_concurrency=CAPACITY)
    llama = make_profile(make_model(LLAMA, pool=pool, min_replicas=0, max_replicas=0), "one-thread", template="llama")
    make_measurement(llama, max_concurrency=4)
    return token_create(service_account("gateway"), days=1)


def hosts() -> str:
    """A gateway's token. Models `wide` (two units a replica) and `chat` (one), both off."""
    from capacity import services
    from capacity.models import PoolSettings
    from capacity.tests.factories import make_measurement, make_model, make_profile
    from quotas.services import service_account, token_create

    pool = services.pool_create(POOL, actor=None, reason="tests")
    PoolSettings.objects.filter(pool=pool).update(**WINDOWS | LOST_SOON)
    for name, units in (("wide", 2), ("chat", 1)):
        model = make_model(name, pool=pool, min_replicas=0, max_replicas=0)
        profile = make_profile(model, "small", units=units, template="simulator", parameters=SIMULATOR)
        make_measurement(profile, max_concurrency=CAPACITY)
    return token_create(service_account("gateway"), days=1)


def pull() -> str:
    """Withholds everything."""
    from django.utils import timezone

    from capacity import services
    from quotas.models import Pool

    services.brake_pull(Pool.objects.get(name=POOL), until=None, actor=None, reason="tests", now=timezone.now())
    return ""


def release() -> str:
    """Lets through what the brake withholds now."""
    from django.utils import timezone

    from capacity import services
    from capacity.briefings import brake_state
    from quotas.models import Pool

    pool = Pool.objects.select_related("brake", "settings").get(name=POOL)
    version = brake_state.version(pool.brake)
    services.brake_release(pool, version=version, actor=None, reason="tests", now=timezone.now())
    return ""


def burst() -> str:
    """Forty passes at once: more than the workers can do one after another."""
    from capacity.models import Lease
    from capacity.tasks import reconcile_pool

    pool_id = Lease.objects.get(pool__name=POOL).pool_id
    for _ in range(40):
        reconcile_pool.apply_async((pool_id,), expires=60)
    return ""


def operator() -> str:
    """A token of somebody who sees everything."""
    from quotas.models import User
    from quotas.services import token_create

    person, _ = User.objects.get_or_create(username="prometheus", defaults={"is_operator": True})
    return token_create(person, days=1)


PASSWORD = "measures-all-day"


def measurer() -> str:
    """Somebody who may measure, and signs in with a password. His name."""
    from quotas.models import User

    if not User.objects.filter(username="mira").exists():
        User.objects.create_user("mira", password=PASSWORD, is_operator=True)
    return "mira"


if __name__ == "__main__":
    django.setup()
    known = (seed, hosts, burst, operator, pull, release, measurer)
    print({function.__name__: function for function in known}[sys.argv[1]]())
