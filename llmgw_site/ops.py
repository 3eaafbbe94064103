"""Health for machines: alive, ready, metrics."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from knox.auth import TokenAuthentication
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from rest_framework.exceptions import AuthenticationFailed

from capacity.exporter import FleetCollector
from capacity.models import Lease
from capacity.sources.push_store import PushStore
from capacity.store import beat_key, redis_client
from capacity.unheard import unheard_if_known

BEAT_LATE = timedelta(seconds=45)
LATE_INTERVALS = 4
UNKNOWN = "unknown: its store does not answer"


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers. Asks nothing of anybody."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when database, Redis, beat and every pool's last pass are well, else 503; each check with its sentence. No names."""
    now = datetime.now(UTC)
    checks = {check.__name__: attempt(check, now) for check in (database, redis)}
    # a store that hangs is waited for once, within the patience of whoever probes
    checks["beat"] = UNKNOWN if checks["redis"] else attempt(beat, now)
    checks["last_pass"] = UNKNOWN if checks["database"] else attempt(last_pass, now)
    faults = {name: fault for name, fault in checks.items() if fault}
    body = {"ready": not faults, "checks": {name: fault or "ok" for name, fault in checks.items()}}
    response = JsonResponse(body, status=503 if faults else 200)
    # whoever asks reads the answer; a line of error for each question would fill the log of a site that starts
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def attempt(check: Callable[[datetime], str], now: datetime) -> str:
    try:
        return check(now)
    except Exception as error:  # each store has its own; the kind is enough and holds no secret
        return f"does not answer ({type(error).__name__})"


def database(now: datetime) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return ""


def redis(now: datetime) -> str:
    redis_client().ping()
    return ""


def beat(now: datetime) -> str:
    found = redis_client().get(beat_key())
    if found is None:
        return "no heartbeat of beat and worker yet"
    age = now - datetime.fromisoformat(found.decode())
    return "" if age <= BEAT_LATE else f"last heartbeat of beat and worker {int(age.total_seconds())} s ago"


def last_pass(now: datetime) -> str:
    late = timedelta(seconds=settings.PASS_SECONDS * LATE_INTERVALS)
    times = list(Lease.objects.values_list("last_pass_at", flat=True))
    missing = sum(1 for at in times if at is None or now - at > late)
    return f"{missing} of {len(times)} pools had no pass for {int(late.total_seconds())} s" if missing else ""


@login_not_required
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus' text for whoever holds a token of somebody who sees everything, or scrapes over loopback without a proxy."""
    if not (is_loopback(request) or has_token(request)):
        return HttpResponse("A bearer token of an operator is needed.\n", status=401, content_type="text/plain")
    registry = CollectorRegistry()
    now = datetime.now(UTC)
    ignored = PushStore(redis_client()).ignored
    registry.register(FleetCollector(now, settings.PASS_SECONDS, ignored, unheard_if_known(now)))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def is_loopback(request: HttpRequest) -> bool:
    proxied = any(header in request.headers for header in ("X-Forwarded-For", "Forwarded", "X-Real-Ip"))
    return not proxied and request.META.get("REMOTE_ADDR") in {"127.0.0.1", "::1"}


def has_token(request: HttpRequest) -> bool:
    try:
        found = TokenAuthentication().authenticate(request)
    except AuthenticationFailed:
        return False
    return bool(found and found[0].sees_everything and not found[0].must_choose_password)
