"""The example: a pool whose engines are simulators, so that the main job is seen at work in an empty installation.

Its rows are written and deleted through the services, like everyone's. Its processes (a node worker that offers units of
the class `sim`, and a gateway with a made-up load) belong to the supervisor, which runs them while the flag file exists.
The figures fit the gateway's built-in load plan (`capacity.gateway.load_plan`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from quotas.models import CapacityQuota, Pool, Scope, User
from quotas.services import scope_delete, scope_save, service_account, token_create, user_delete

from . import services
from .models import LanguageModel, Lease, Measurement, Node, PoolSettings, Profile, Replica, Slo

POOL = "example"
NODE = "example-1"
RESOURCE = "sim"
UNITS = 16
ACCOUNT = "example-gateway"
REASON = "example"
TOKEN_DAYS = 366
# all windows shortened, so that two minutes show what hours show elsewhere; whole seconds
WINDOWS: Mapping[str, int] = {
    "down_window_seconds": 30,
    "stale_after_seconds": 20,
    "start_timeout_seconds": 60,
    "unready_grace_seconds": 15,
    "drain_timeout_seconds": 20,
    "idle_seconds": 60,
    "wake_seconds": 30,
    "reclaim_wait_seconds": 10,
    "min_run_seconds": 60,
    "shrink_grace_seconds": 30,
    "node_silent_seconds": 20,
    "node_lost_seconds": 60,
    "brake_window_seconds": 60,
    "brake_stops": 4,
    "brake_starts": 12,
}
# scope → (parents, limit of `sim` units)
SCOPES: Mapping[str, tuple[tuple[str, ...], int | None]] = {
    "example-org": ((), UNITS),
    "example-product": (("example-org",), None),
    "example-tools": (("example-org",), 6),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A profile: so many `sim` units serve `capacity` requests in flight at these latencies."""

    name: str
    units: int
    capacity: int
    ttft_ms: int
    tpot_ms: int
    priority: int = 0

    @property
    def tokens_per_second(self) -> Decimal:
        """Output tokens at `capacity`, all of them decoding."""
        return Decimal(self.capacity * 1000) / self.tpot_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A model of the example."""

    name: str
    scope: str
    priority: int
    ways: tuple[Way, ...]
    sleeps: bool = False


MODELS = (
    Served(
        name="chat",
        scope="example-product",
        priority=20,
        ways=(
            Way(name="wide", units=2, capacity=8, ttft_ms=200, tpot_ms=40, priority=10),
            Way(name="narrow", units=1, capacity=3, ttft_ms=200, tpot_ms=40),
        ),
    ),
    Served(
        name="code", scope="example-tools", priority=10, ways=(Way(name="wide", units=3, capacity=6, ttft_ms=300, tpot_ms=30),)
    ),
    Served(
        name="summarize",
        scope="example-product",
        priority=0,
        sleeps=True,
        ways=(Way(name="small", units=2, capacity=4, ttft_ms=300, tpot_ms=50),),
    ),
)


def exists() -> bool:
    return Pool.objects.filter(name=POOL, is_example=True).exists()


def seed(actor: User | None = None) -> None:
    """Write the example's rows and let the supervisor start its processes; nothing where it exists already.

    ValidationError where a name that it needs is taken; then nothing is written."""
    if not exists():
        with transaction.atomic():
            _write(actor)
    follow(actor)


def remove(actor: User | None = None) -> None:
    """Delete the example's rows and let the supervisor end its processes, engines too; nothing where there is none."""
    _flag().unlink(missing_ok=True)
    with transaction.atomic():
        pool = Pool.objects.filter(name=POOL, is_example=True).first()
        if pool is not None:
            _delete(pool, actor)
    _token().unlink(missing_ok=True)


def follow(actor: User | None = None) -> None:
    """Make flag and token agree with the rows, as after a crash in between, or where a database was put back."""
    if not exists():
        _flag().unlink(missing_ok=True)
        return
    if not _token().exists():
        token = token_create(service_account(ACCOUNT, actor=actor), days=TOKEN_DAYS)
        _write_private(_token(), token)
    if not _flag().exists():
        _write_private(_flag(), json.dumps({"pool": POOL, "node": NODE, "resource": f"{RESOURCE}={UNITS}"}))


def _write(actor: User | None) -> None:
    pool = services.pool_create(POOL, actor=actor, reason=REASON, is_example=True)
    # hosts remember the highest generation that they obeyed; an example that is written again must not be behind the former one
    Lease.objects.filter(pool=pool).update(generation=int(timezone.now().timestamp()))
    windows = PoolSettings.objects.get(pool=pool)
    for name, seconds in WINDOWS.items():
        setattr(windows, name, seconds)
    _save(windows, actor)
    _save(Node(name=NODE, pool=pool, resources={RESOURCE: UNITS}), actor)
    scopes = _write_scopes(pool, actor)
    slo = Slo(name="example: interactive", ttft_percentile=95, ttft_ms=1000, tpot_percentile=95, tpot_ms=80)
    _save(slo, actor)
    for served in MODELS:
        _write_model(served, pool, scopes[served.scope], slo, actor)


def _write_scopes(pool: Pool, actor: User | None) -> dict[str, Scope]:
    written: dict[str, Scope] = {}
    for name, (parents, limit) in SCOPES.items():
        written[name] = Scope(name=name)
        scope_save(written[name], parents=[written[parent] for parent in parents], actor=actor, reason=REASON)
        if limit is not None:
            quota = CapacityQuota(scope=written[name], pool=pool, target=RESOURCE, limit=limit)
            services.quota_save(quota, actor=actor, reason=REASON)
    return written


def _write_model(served: Served, pool: Pool, scope: Scope, slo: Slo, actor: User | None) -> None:
    model = LanguageModel(
        name=served.name,
        pool=pool,
        scope=scope,
        mode=LanguageModel.Mode.AUTO,
        priority=served.priority,
        min_replicas=0 if served.sleeps else 1,
        max_replicas=4,
        scale_to_zero=served.sleeps,
        slo=slo,
    )
    _save(model, actor)
    for way in served.ways:
        _write_way(way, model, slo, actor)


def _write_way(way: Way, model: LanguageModel, slo: Slo, actor: User | None) -> None:
    profile = Profile(
        model=model,
        name=way.name,
        resource=RESOURCE,
        units=way.units,
        priority=way.priority,
        template="simulator",
        parameters={"capacity": str(way.capacity), "ttft_ms": str(way.ttft_ms), "tpot_ms": str(way.tpot_ms), "load_seconds": "4"},
    )
    _save(profile, actor)
    measurement = Measurement(
        profile=profile,
        max_concurrency=way.capacity,
        tokens_per_second=way.tokens_per_second.quantize(Decimal("0.000001")),
        status=Measurement.Status.CURRENT,
        slo=slo,
        evidence={"engine": "simulator", "tool": "the simulator's own statement", "stages": _stages(way)},
        note="Stated by the engine simulator, which slows past this as a measured engine does.",
    )
    _save(measurement, actor)


def _stages(way: Way) -> list[dict[str, Any]]:
    """What a sweep would find: constant latencies up to the capacity, all of them growing with the load beyond."""
    steps = sorted({1, max(1, way.capacity // 2), way.capacity, way.capacity * 2})
    return [_stage(way, concurrency) for concurrency in steps]


def _stage(way: Way, concurrency: int) -> dict[str, Any]:
    slower = max(1.0, concurrency / way.capacity)
    return {
        "concurrency": concurrency,
        "tokens_per_second": round(concurrency * 1000 / (way.tpot_ms * slower), 3),
        "ttft_ms": round(way.ttft_ms * slower),
        "tpot_ms": round(way.tpot_ms * slower, 1),
        "errors": 0,
    }


def _delete(pool: Pool, actor: User | None) -> None:
    # their engines are ended by the node worker, which the supervisor ends: no pass is left to write these rows again
    Replica.objects.filter(pool=pool).delete()
    for model in LanguageModel.objects.filter(pool=pool):
        services.delete(model, actor=actor, reason=REASON)
    for quota in CapacityQuota.objects.filter(pool=pool):
        services.quota_delete(quota, actor=actor, reason=REASON)
    for node in Node.objects.filter(pool=pool):
        services.delete(node, actor=actor, reason=REASON)
    services.delete(pool, actor=actor, reason=REASON)
    for name in reversed(SCOPES):
        _delete_scope(name, actor)
    for slo in Slo.objects.filter(name="example: interactive", languagemodel=None, measurement=None):
        services.delete(slo, actor=actor, reason=REASON)
    for account in User.objects.filter(username=ACCOUNT, is_service=True):
        user_delete(account, actor=actor, reason=REASON)


def _delete_scope(name: str, actor: User | None) -> None:
    """One that somebody has put to use meanwhile stays."""
    for scope in Scope.objects.filter(name=name):
        try:
            with transaction.atomic():
                scope_delete(scope, actor=actor, reason=REASON)
        except ValidationError:
            continue


def _save(row: Any, actor: User | None) -> None:
    services.save(row, actor=actor, reason=REASON)


def _flag() -> Path:
    return Path(settings.VAR) / "example.json"


def _token() -> Path:
    return Path(settings.VAR) / "example" / "token"


def _write_private(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
