"""The two last-good views: who may have how much, and what was measured. Read from the database, kept in Redis."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, Generic, TypeVar

import structlog
from django.db import close_old_connections
from redis import Redis
from redis.exceptions import RedisError

from quotas.domain.last_good import LastGood
from quotas.domain.policy import QuotaPolicy, build_policy
from quotas.domain.types import Quota, Scope
from quotas.models import Scope as ScopeRow

from .domain.types import Measurement
from .models import Measurement as MeasurementRow
from .sources.store import read_time

log = structlog.get_logger(__name__)
T = TypeVar("T")
READ_SECONDS = 5


class Policies:
    """Scopes, and each pool's quotas. A pool's policy is built at its first use and lives as long as this value."""

    def __init__(self, scopes: tuple[Scope, ...], quotas: Mapping[str, tuple[Quota, ...]]) -> None:
        self.scopes = scopes
        self.quotas = quotas
        self.names = frozenset(scope.name for scope in scopes)
        self._built: dict[str, QuotaPolicy] = {}

    def policy(self, pool: str) -> QuotaPolicy:
        if pool not in self._built:
            self._built[pool] = build_policy(self.scopes, self.quotas.get(pool, ()))
        return self._built[pool]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policies) and (self.scopes, self.quotas) == (other.scopes, other.quotas)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """Each pool's measurements in use; `skipped`: (profile, why) of rows that could not be used; `doubted`: of those in use,
    (pool, model, code of the problem, why)."""

    in_use: Mapping[str, tuple[Measurement, ...]]
    skipped: tuple[tuple[str, str], ...] = ()
    doubted: tuple[tuple[str, str, str, str], ...] = ()


def load_policies(held: Policies | None) -> Policies:
    """All scopes and quotas, in one query: a row for each parent of a scope with each of its quotas.

    The value held so far where nothing changed, so that what was built stays."""
    parents: dict[str, dict[str, None]] = {}
    funding: dict[str, str] = {}
    quotas: dict[int, tuple[str, Quota]] = {}
    edge = ("name", "parent_edges__parent__name", "parent_edges__is_funding")
    rows = ScopeRow.objects.order_by("name", "parent_edges__position", "parent_edges__id", "quotas__id")
    for name, parent, is_funding, quota_id, *quota in rows.values_list(*edge, *QUOTA_FIELDS):
        above = parents.setdefault(name, {})
        if parent is not None:
            above[parent] = None
        if is_funding:
            funding[name] = parent
        if quota_id is not None and quota_id not in quotas:
            quotas[quota_id] = quota[0], quota_of(name, *quota[1:])
    scopes = tuple(Scope(name=n, parents=tuple(above), funding_parent=funding.get(n)) for n, above in parents.items())
    fresh = Policies(scopes, by_pool(quotas.values()))
    return held if held == fresh else fresh


QUOTA_FIELDS = (
    "quotas__id",
    "quotas__pool__name",
    "quotas__target",
    "quotas__guarantee",
    "quotas__limit",
    "quotas__weight",
    "quotas__lend",
    "quotas__lowered_at",
)


def quota_of(
    scope: str, target: str, guarantee: int | None, limit: int | None, weight: int, lend: bool, lowered_at: datetime | None
) -> Quota:
    return Quota(scope=scope, target=target, guarantee=guarantee, limit=limit, weight=weight, lend=lend, lowered_at=lowered_at)


def by_pool(quotas: Iterable[tuple[str, Quota]]) -> dict[str, tuple[Quota, ...]]:
    pools: dict[str, list[Quota]] = defaultdict(list)
    for pool, quota in quotas:
        pools[pool].append(quota)
    return {pool: tuple(rows) for pool, rows in pools.items()}


def load_measurements(_held: Measurements | None) -> Measurements:
    """Of each profile the row in use. One that cannot be used is skipped and listed, and the next best stands for it."""
    chosen: dict[tuple[str, str, str], Measurement] = {}
    skipped: list[tuple[str, str]] = []
    doubted: list[tuple[str, str, str, str]] = []
    rows = MeasurementRow.objects.best_first().values_list(*MEASUREMENT_FIELDS)
    for pool, model, profile, concurrency, tokens, status, cause, why, off_shape in rows:
        fault = measurement_fault(concurrency, tokens, status)
        if fault:
            skipped.append((f"{model} · {profile}", fault))
        elif (pool, model, profile) not in chosen:
            chosen[pool, model, profile] = Measurement(
                model=model, profile=profile, max_concurrency=concurrency, tokens_per_second=Fraction(tokens), status=status
            )
            doubted += [(pool, model, code, f"{profile}: {text}") for code, text in doubts_of(status, cause, why, off_shape)]
    in_use: dict[str, list[Measurement]] = defaultdict(list)
    for (pool, _, _), row in chosen.items():
        in_use[pool].append(row)
    return Measurements(
        in_use={pool: tuple(rows) for pool, rows in in_use.items()}, skipped=tuple(skipped), doubted=tuple(doubted)
    )


def doubts_of(status: str, cause: str, why: str, off_shape: Any) -> Iterable[tuple[str, str]]:
    """What the self-check found, as (code, why)."""
    if status == "stale" and cause == "self_check":
        yield "optimistic", why
    if off_shape and isinstance(off_shape, str):
        yield "off_shape", f"{off_shape}."


MEASUREMENT_FIELDS = (
    "profile__model__pool__name",
    "profile__model__name",
    "profile__name",
    "max_concurrency",
    "tokens_per_second",
    "status",
    "stale_cause",
    "stale_why",
    "self_check__off_shape",
)


def measurement_fault(concurrency: Any, tokens: Any, status: str) -> str:
    """Why a stored row cannot be used; raw SQL and older versions may have left anything."""
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or not 0 <= concurrency <= 10**12:
        return f"max_concurrency {concurrency!r} is not a whole number from 0 to 10^12"
    try:
        share = Fraction(tokens)
    except (TypeError, ValueError, OverflowError):
        return f"tokens_per_second {tokens!r} is not a number"
    if not 0 <= share <= 10**12:
        return f"tokens_per_second {tokens} is not between 0 and 10^12"
    return "" if status in {"current", "stale", "assumed"} else f"status {status!r} is none of current, stale, assumed"


def dump_policies(value: Policies) -> dict[str, Any]:
    return {
        "scopes": [[s.name, s.parents, s.funding_parent] for s in value.scopes],
        "quotas": {
            pool: [
                [q.scope, q.target, q.guarantee, q.limit, q.weight, q.lend, q.lowered_at.isoformat() if q.lowered_at else None]
                for q in rows
            ]
            for pool, rows in value.quotas.items()
        },
    }


def read_policies(document: Any) -> Policies:
    scopes = tuple(Scope(name=n, parents=tuple(p), funding_parent=f) for n, p, f in document["scopes"])
    return Policies(scopes, {pool: tuple(read_quota(row) for row in rows) for pool, rows in document["quotas"].items()})


def read_quota(row: Any) -> Quota:
    scope, target, guarantee, limit, weight, lend, lowered_at = row
    at = datetime.fromisoformat(lowered_at) if lowered_at else None
    return Quota(scope=scope, target=target, guarantee=guarantee, limit=limit, weight=weight, lend=lend, lowered_at=at)


def dump_measurements(value: Measurements) -> dict[str, Any]:
    rows = {
        pool: [[m.model, m.profile, m.max_concurrency, str(m.tokens_per_second), m.status] for m in found]
        for pool, found in value.in_use.items()
    }
    return {"in_use": rows, "skipped": value.skipped, "doubted": value.doubted}


def read_measurements(document: Any) -> Measurements:
    def row(model: str, profile: str, concurrency: int, tokens: str, status: Any) -> Measurement:
        return Measurement(
            model=model, profile=profile, max_concurrency=concurrency, tokens_per_second=Fraction(tokens), status=status
        )

    in_use = {pool: tuple(row(*found) for found in rows) for pool, rows in document["in_use"].items()}
    return Measurements(
        in_use=in_use,
        skipped=tuple((where, why) for where, why in document["skipped"]),
        doubted=tuple((pool, model, code, why) for pool, model, code, why in document.get("doubted", ())),
    )


class RedisKeeper(Generic[T]):
    """Keeps a view's last good answer as JSON. Redis away, or a row of another version: nothing kept, and no fault."""

    def __init__(self, redis: Redis, installation: str, name: str, dump: Callable[[T], Any], read: Callable[[Any], T]) -> None:
        self._redis, self._key, self._dump, self._read = redis, f"llmgw:last-good:{installation}:{name}", dump, read
        self._kept: T | None = None

    def keep(self, value: T, read_at: datetime) -> None:
        try:
            if value is not self._kept:
                self._redis.set(self._key, json.dumps(self._dump(value)))
            self._redis.set(f"{self._key}:at", read_at.isoformat())
            self._kept = value
        except RedisError as error:
            log.warning("view_not_kept", view=self._key, error=type(error).__name__)

    def recall(self) -> tuple[T, datetime] | None:
        try:
            found: Any = self._redis.mget(self._key, f"{self._key}:at")
            if None in found:
                return None
            read_at = read_time(found[1].decode())
            return None if read_at is None else (self._read(json.loads(found[0])), read_at)
        except (RedisError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
            return None


class Bounded(Generic[T]):
    """Runs a read in a thread of its own and gives it up after `seconds`; while one hangs, no second is begun."""

    def __init__(self, load: Callable[[T | None], T], seconds: float = READ_SECONDS) -> None:
        self._load, self._seconds = load, seconds
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="last-good")
        self._running: Future[T] | None = None

    def __call__(self, held: T | None) -> T:
        if self._running is None or self._running.done():
            self._running = self._thread.submit(self._read, held)
        return self._running.result(timeout=self._seconds)

    def _read(self, held: T | None) -> T:
        close_old_connections()
        try:
            return self._load(held)
        finally:
            close_old_connections()


def views(
    redis: Redis, installation: str, bound: Callable[[Callable[[Any], Any]], Callable[[Any], Any]] = Bounded
) -> Iterable[LastGood[Any]]:
    """The view of quotas, and the view of measurements. What an installation kept, it alone recalls."""
    policies = RedisKeeper(redis, installation, "policies", dump_policies, read_policies)
    measurements = RedisKeeper(redis, installation, "measurements", dump_measurements, read_measurements)
    return LastGood(bound(load_policies), policies), LastGood(bound(load_measurements), measurements)
