"""Rows and observations → the domain's snapshot. Nothing is decided here; what cannot be known is said to be unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from quotas.domain.last_good import Reading
from quotas.domain.policy import QuotaPolicy
from quotas.domain.types import Quota

from . import rows as row_module
from .domain.probation import Histograms, Watch
from .domain.snapshot import bounds_fault, snapshot_document
from .domain.types import Measurement, Model, Node, Profile, Replica, Snapshot
from .fingerprints import Prints
from .last_good_views import Measurements, Policies
from .models import Lease
from .observation.claims import Waits, only_advised, waits_of
from .observation.model_loads import disagreements, held_requests, in_service, last_arrival, peak, unknown_pushes, without_peaks
from .observation.observe import Known, Observed, Present, observe
from .observation.report_sanity import unread
from .observation.sights import KnownNode
from .ports import NodeReport, Sample
from .recording import watches
from .recording.backoff import Rest, backoffs, failures, rests
from .rows import ModelRow, Problem, ProfileRow, ReplicaRow, Rows
from .rows.registered import registered
from .sources.gateway import Combined, combine
from .wiring import Deps, deps


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A snapshot and what it was made of. `observed` None: the inventory could not be read."""

    snapshot: Snapshot
    policy: QuotaPolicy | None
    rows: Rows
    observed: Observed | None
    loads: Mapping[str, Sample]
    rates: Mapping[str, float]
    problems: tuple[Problem, ...]
    views: Mapping[str, Any]
    waits: Waits
    """Whether the pool is ours to act on; while it is not, every model of it is only advised."""
    disagree_since: Mapping[str, datetime]
    """Models on a replica of which gateways and engine disagree."""
    rested: tuple[Rest, ...] = ()
    """Back-offs that this pass's failures began or prolonged."""
    newcomers: tuple[NodeReport, ...] = ()
    """Reports of hosts that are not written down."""
    watches: Mapping[str, Watch] = field(default_factory=dict)
    """Model → the watch over its last removal, after this pass's look."""
    bases: Mapping[str, Histograms] = field(default_factory=dict)
    """Replica → its latencies before this pass's removals."""


def build(deps: Deps, lease: Lease, now: datetime, unbroken_since: datetime) -> Built:
    """The pool's snapshot at `now`: reports and loads first, then rows, then the two views."""
    pool, settings = lease.pool, lease.pool.settings
    reports = deps.driver.observe(pool.name)
    sampled = deps.loads.loads(pool.name)
    pushed = deps.pushes.read(pool.name)
    rows = row_module.load(pool.id, settings, now)
    waits = waits_of(lease, deps.installation, reports or ())
    rows = only_advised(rows) if waits.problems else rows
    problems: list[Problem] = [*waits.problems, *rows.problems, *unread(deps.driver.unreadable(pool.name))]
    own = row_module.domain_settings(settings, problems)
    loads = combine(pushed.pushes, sampled or {}, now, own.stale_after_seconds, kept_arrivals=pushed.arrivals) if pushed else None
    observed = observed_fleet(deps, lease, rows, reports, unbroken_since, now)
    problems.extend(observed.problems if observed else ())
    disagree = disagreements(rows, observed, loads, own.down_window_seconds, now)
    problems.extend(disagree.problems)
    problems.extend(unknown_pushes(pushed.pushes if pushed else (), pool.name, own.stale_after_seconds, now))
    rows = without_peaks(rows, disagree.blocked)
    # what an older state asked for says nothing of what fails now
    rested = () if waits.problems else rests(failures(rows, observed), rows, now)
    policies, measurements = read_views(deps, rows, now)
    watched = watches.look(deps.loads, pool.name, rows, observed, now)
    models = [model(row, loads, observed is not None, unbroken_since, now, problems) for row in rows.models.values()]
    if policies.value:
        models = [in_known_scope(m, policies.value.names, problems) for m in models]
    models = [watches.resting(m, rows.models[m.name], watched.get(m.name), now, problems) for m in models]
    samples = loads.loads if loads else (sampled or {})
    snapshot = Snapshot(
        at=now,
        settings=own,
        nodes=None if observed is None else domain_nodes(rows, observed),
        models=tuple(models),
        profiles=tuple(profile(row) for row in rows.profiles.values()),
        measurements=measured(measurements.value, pool.name, rows),
        replicas=None if observed is None else domain_replicas(rows, observed, samples),
        backoffs=backoffs(rows, rested),
        scopes=policies.value.scopes if policies.value else None,
        quotas=quotas(policies.value, pool.name, rows),
    )
    return Built(
        snapshot=snapshot,
        policy=policies.value.policy(pool.name) if policies.value else None,
        rows=rows,
        observed=observed,
        loads=samples,
        rates=deps.rates.rates(pool.name, in_service(sampled or {}, rows)),
        problems=tuple(problems) + skipped(measurements.value) + doubted(measurements.value, pool.name),
        views={"quotas": view_state(policies), "measurements": view_state(measurements)},
        rested=rested,
        newcomers=tuple(report for report in reports or () if report.node not in rows.nodes),
        waits=waits,
        watches=watched,
        disagree_since=disagree.since,
    )


def read_views(deps: Deps, rows: Rows, now: datetime) -> tuple[Reading[Policies], Reading[Measurements]]:
    """A scope that the view does not know yet is newer than the view: it is asked again at once."""
    policies = deps.policies.get(now)
    wanted = {row.scope for row in rows.models.values() if row.scope}
    if policies.value is not None and not policies.error and not wanted <= policies.value.names:
        deps.policies.expire()
        policies = deps.policies.get(now)
    return policies, deps.measurements.get(now)


def view_state(reading: Reading[Any]) -> dict[str, str]:
    return {"read_at": reading.read_at.isoformat() if reading.read_at else "", "error": reading.error}


def skipped(measurements: Measurements | None) -> tuple[Problem, ...]:
    found = measurements.skipped if measurements else ()
    return tuple({"code": "invalid_row", "subject": f"measurement:{where}", "detail": why} for where, why in found)


def doubted(measurements: Measurements | None, pool: str) -> tuple[Problem, ...]:
    """What the self-check says against measurements in use."""
    found = measurements.doubted if measurements else ()
    return tuple({"code": code, "subject": f"model:{model}", "detail": why} for at, model, code, why in found if at == pool)


def observed_fleet(
    deps: Deps, lease: Lease, rows: Rows, reports: Sequence[NodeReport] | None, unbroken_since: datetime, now: datetime
) -> Observed | None:
    """None where the reports cannot be read."""
    if reports is None:
        return None
    nodes: list[KnownNode] = [node.known for node in rows.nodes.values()]
    replicas = [known(row) for row in rows.replicas.values()]
    patience = row_module.patience(lease.pool.settings, unbroken_since)
    return observe(replicas, nodes, reports, rows.profiles, patience, now, registered(rows, deps.answers, lease.pool.name))


def known(row: ReplicaRow) -> Known:
    return Known(
        name=row.name,
        model=row.model,
        profile=row.profile,
        nodes=row.nodes,
        state=row.state,
        since=row.since,
        intent=row.intent,
        intent_at=row.intent_at,
        was_seen=row.seen_at is not None,
        url=row.url,
    )


def model(
    row: ModelRow, loads: Combined | None, is_observed: bool, unbroken_since: datetime, now: datetime, problems: list[Problem]
) -> Model:
    """A model whose stored bounds cross is left alone and named; its pass goes on."""
    fault = bounds_fault(row.min_replicas, row.max_replicas)
    if fault:
        problems.append({"code": "invalid_row", "subject": f"model:{row.name}", "detail": fault})
    covered = int((now - max(unbroken_since, row.created_at)).total_seconds())
    return Model(
        name=row.name,
        scope=row.scope,
        mode=row.mode,  # type: ignore[arg-type]
        priority=row.priority,
        min_replicas=row.min_replicas,
        max_replicas=row.max_replicas,
        scale_to_zero=row.scale_to_zero,
        held_requests=held_requests(row, loads),
        last_arrival_at=last_arrival(row, loads),
        woken_at=row.woken_at,
        last_change_at=row.last_change_at,
        demand_peak=peak(row),
        demand_seconds=max(0, covered),
        short_since=row.short_since,
        down_window_seconds=row.down_window_seconds,
        drain_timeout_seconds=row.drain_timeout_seconds,
        scale_down_fraction=row.scale_down_fraction,
        bounds_conflict=fault is not None,
    )


def in_known_scope(found: Model, names: frozenset[str], problems: list[Problem]) -> Model:
    """A scope that even a fresh view does not have: its limits are unknown, so the model is only advised."""
    if found.scope is None or found.scope in names:
        return found
    problems.append(
        {
            "code": "invalid_row",
            "subject": f"model:{found.name}",
            "detail": f"its scope “{found.scope}” could not be read; it is only advised",
        }
    )
    return replace(found, scope=None, mode="paused" if found.mode == "paused" else "advise")


def profile(row: ProfileRow) -> Profile:
    return Profile(
        model=row.model,
        name=row.name,
        resource=row.resource,
        units=row.units,
        hosts=row.hosts,
        priority=row.priority,
        state=row.state,  # type: ignore[arg-type]
        selector=row.selector,
        start_timeout_seconds=row.start_timeout_seconds,
        measure=row.measure,
    )


def measured(value: Measurements | None, pool: str, rows: Rows) -> tuple[Measurement, ...] | None:
    """Those of profiles that still exist: the view may be half a minute older than the rows."""
    if value is None:
        return None
    return tuple(row for row in value.in_use.get(pool, ()) if (row.model, row.profile) in rows.profiles)


def quotas(value: Policies | None, pool: str, rows: Rows) -> tuple[Quota, ...] | None:
    """A row on a model of another pool, or on one that is gone, binds nothing here."""
    if value is None:
        return None
    return tuple(row for row in value.quotas.get(pool, ()) if row.model is None or row.model in rows.models)


def domain_nodes(rows: Rows, observed: Observed) -> tuple[Node, ...]:
    return tuple(
        Node(
            name=sight.name,
            resources=sight.resources,
            labels=sight.labels,
            schedulable=rows.nodes[sight.name].schedulable,
            ready=sight.is_ready and sight.reported_at is not None,  # nobody answers for one that was only typed in
        )
        for sight in observed.nodes.values()
        if not sight.is_lost
    )


def domain_replicas(rows: Rows, observed: Observed, loads: Mapping[str, Sample]) -> tuple[Replica, ...]:
    prints = Prints(rows.profiles)
    return tuple(
        replica(present, rows.replicas.get(present.name), loads.get(present.name), prints)
        for present in observed.present
        if (present.model, present.profile) in rows.profiles
    )


def replica(present: Present, row: ReplicaRow | None, sample: Sample | None, prints: Prints) -> Replica:
    """A silent host's replicas keep their state and have no known load. One that is being cancelled has none."""
    in_flight = None if sample is None or present.is_silent else sample.in_flight
    if present.intent == "cancel":
        in_flight = 0
    return Replica(
        name=present.name,
        model=present.model,
        profile=present.profile,
        nodes=present.nodes,
        state=present.state,  # type: ignore[arg-type]
        since=present.since,
        in_flight=in_flight,
        sampled_at=sample.sampled_at if sample and present.intent != "cancel" else None,
        removable=may_go(present, row),
        under_test=row is not None and row.under_test,
        give_back=row is not None and row.give_back,
        outdated=row is not None and prints.is_outdated(row),
        drained_for=(row.drained_for or None) if row else None,
        drain_reason=(row.drain_reason or None) if row else None,
    )


def may_go(present: Present, row: ReplicaRow | None) -> bool:
    """Never what somebody else started, and nothing on a host that is silent: an order would find it in another state."""
    return not present.is_silent and (row is None or (row.removable and not row.is_registered))


def live_document(pool: str, now: datetime) -> dict[str, Any]:
    """The live fleet's snapshot as `llmgw.snapshot/1`. Touches nothing. Raises `Lease.DoesNotExist` for an unknown pool."""
    lease = Lease.objects.select_related("pool__settings").get(pool__name=pool)
    built = build(deps(), lease, now, lease.unbroken_since or now)
    return snapshot_document(built.snapshot)
