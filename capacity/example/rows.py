"""An example's rows, flag and token: written once, deleted whole."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from quotas.models import CapacityQuota, Pool, Scope, User
from quotas.services import scope_delete, scope_save, service_account, token_create, user_delete

from .. import services
from ..models import LanguageModel, Lease, Measurement, Node, PoolSettings, Profile, Replica, Slo
from .shape import Example, Served, Way
from .simulated import SIMULATED

REASON = "example"
TOKEN_DAYS = 366
OWN_SLO = "example: "


def exists(which: Example = SIMULATED) -> bool:
    return Pool.objects.filter(name=which.pool, is_example=True).exists()


def seed(actor: User | None = None, which: Example = SIMULATED) -> None:
    """Write the example's rows and let the supervisor start its processes; nothing where it exists already.

    ValidationError where a name that it needs is taken, or this machine cannot run it; then nothing is written."""
    if not exists(which):
        contents = which.contents()
        with transaction.atomic():
            _write(which, contents.models, actor)
        for name, text in contents.files.items():
            _write_private(_folder(which) / name, text)
    follow(actor, which)


def remove(actor: User | None = None, which: Example = SIMULATED) -> None:
    """Delete the example's rows and let the supervisor end its processes, engines too; nothing where there is none."""
    _flag(which).unlink(missing_ok=True)
    with transaction.atomic():
        pool = Pool.objects.filter(name=which.pool, is_example=True).first()
        if pool is not None:
            _delete(which, pool, actor)
    _token(which).unlink(missing_ok=True)


def follow(actor: User | None = None, which: Example = SIMULATED) -> None:
    """Make flag and token agree with the rows, as after a crash in between, or where a database was put back."""
    if not exists(which):
        _flag(which).unlink(missing_ok=True)
        return
    if not _token(which).exists():
        token = token_create(service_account(which.account, actor=actor), days=TOKEN_DAYS)
        _write_private(_token(which), token)
    if not _flag(which).exists():
        flag = {"pool": which.pool, "node": which.node, "resource": f"{which.resource}={which.units}"}
        _write_private(_flag(which), json.dumps(flag))


def _write(which: Example, models: tuple[Served, ...], actor: User | None) -> None:
    pool = services.pool_create(which.pool, actor=actor, reason=REASON, is_example=True)
    # hosts remember the highest generation that they obeyed; an example that is written again must not be behind the former one
    Lease.objects.filter(pool=pool).update(generation=int(timezone.now().timestamp()))
    windows = PoolSettings.objects.get(pool=pool)
    for name, seconds in which.windows.items():
        setattr(windows, name, seconds)
    _save(windows, actor)
    _save(Node(name=which.node, pool=pool, resources={which.resource: which.units}), actor)
    scopes = _write_scopes(which, pool, actor)
    slos = {name: Slo(name=name, **fields) for name, fields in which.slos.items()}
    for slo in slos.values():
        _save(slo, actor)
    for served in models:
        slo = slos[served.slo]
        model = _write_model(served, pool, scopes[served.scope], slo, actor)
        for way in served.ways:
            _write_way(way, which.resource, model, slo, actor)


def _write_scopes(which: Example, pool: Pool, actor: User | None) -> dict[str, Scope]:
    written: dict[str, Scope] = {}
    for name, (parents, limit) in which.scopes.items():
        written[name] = Scope(name=name)
        scope_save(written[name], parents=[written[parent] for parent in parents], actor=actor, reason=REASON)
        if limit is not None:
            quota = CapacityQuota(scope=written[name], pool=pool, target=which.resource, limit=limit)
            services.quota_save(quota, actor=actor, reason=REASON)
    return written


def _write_model(served: Served, pool: Pool, scope: Scope, slo: Slo, actor: User | None) -> LanguageModel:
    model = LanguageModel(
        name=served.name,
        pool=pool,
        scope=scope,
        mode=LanguageModel.Mode.AUTO,
        priority=served.priority,
        min_replicas=0 if served.sleeps else 1,
        max_replicas=served.max_replicas,
        scale_to_zero=served.sleeps,
        slo=slo,
    )
    _save(model, actor)
    return model


def _write_way(way: Way, resource: str, model: LanguageModel, slo: Slo, actor: User | None) -> None:
    profile = Profile(
        model=model,
        name=way.name,
        resource=resource,
        units=way.units,
        priority=way.priority,
        template=way.template,
        parameters=dict(way.parameters),
    )
    _save(profile, actor)
    measurement = Measurement(
        profile=profile,
        max_concurrency=way.capacity,
        tokens_per_second=way.tokens_per_second.quantize(Decimal("0.000001")),
        status=Measurement.Status.CURRENT,
        slo=slo,
        kind=way.evidence.get("kind", ""),
        evidence=dict(way.evidence),
        note=way.note,
    )
    _save(measurement, actor)


def _delete(which: Example, pool: Pool, actor: User | None) -> None:
    # their engines are ended by the node worker, which the supervisor ends: no pass is left to write these rows again
    Replica.objects.filter(pool=pool).delete()
    # an earlier version called its SLO by another name
    slos = {*which.slos, *Slo.objects.filter(languagemodel__pool=pool, name__startswith=OWN_SLO).values_list("name", flat=True)}
    for model in LanguageModel.objects.filter(pool=pool):
        services.delete(model, actor=actor, reason=REASON)
    for quota in CapacityQuota.objects.filter(pool=pool):
        services.quota_delete(quota, actor=actor, reason=REASON)
    for node in Node.objects.filter(pool=pool):
        services.delete(node, actor=actor, reason=REASON)
    services.delete(pool, actor=actor, reason=REASON)
    for name in reversed(which.scopes):
        _delete_scope(name, actor)
    for slo in Slo.objects.filter(name__in=slos, languagemodel=None, measurement=None):
        services.delete(slo, actor=actor, reason=REASON)
    for account in User.objects.filter(username=which.account, is_service=True):
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


def _folder(which: Example) -> Path:
    return Path(settings.VAR) / which.folder


def _flag(which: Example) -> Path:
    return Path(settings.VAR) / f"{which.folder}.json"


def _token(which: Example) -> Path:
    return _folder(which) / "token"


def _write_private(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
