"""The rows that a pass needs of one pool, in four queries whatever the fleet's size. Rows that break a rule are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Case, Count, Max, Value, When

from ..domain.latency import Latency
from ..domain.probation import Target
from ..domain.types import Settings
from ..models import BenchRun, LanguageModel, Node, PoolSettings, Sample
from ..observation.sights import KnownNode, Patience
from .faults import fraction, invalid, node_fault, own_fraction, own_names, profile_fault, shared_names
from .replicas import is_one_of, load_replicas
from .texts import Json, columns
from .types import BackoffRow, DecisionRow, ModelRow, NodeRow, Problem, ProfileRow, Rows


def load(pool_id: int, settings: PoolSettings, now: datetime) -> Rows:
    """Everything of the pool that is in the database and in use."""
    problems: list[Problem] = []
    nodes, backoffs = load_nodes(pool_id, problems)
    models, profiles = load_models(pool_id, settings, now, problems)
    return Rows(
        nodes=nodes,
        models=models,
        profiles=profiles,
        replicas=load_replicas(pool_id, profiles, now),
        backoffs=backoffs,
        problems=tuple(problems),
    )


def load_nodes(pool_id: int, problems: list[Problem]) -> tuple[dict[str, NodeRow], list[BackoffRow]]:
    """Nodes with their back-offs, in one query."""
    nodes: dict[str, NodeRow] = {}
    backoffs = []
    fields = ("id", "name", "resources", "labels", "schedulable", "reported_at", "host_clock_at")
    joined = tuple(f"backoffs__{name}" for name in ("id", "profile_id", "failures", "until", "exits"))
    for id_, name, resources, labels, schedulable, reported_at, host_clock_at, *backoff in (
        Node.objects.filter(pool_id=pool_id).order_by("name").values_list(*fields, *joined)
    ):
        if backoff[0] is not None:
            row, profile, failures, until, exits = backoff
            backoffs.append(BackoffRow(id=row, profile_id=profile, node=name, failures=failures, until=until, exits=exits or ()))
        if name in nodes:
            continue
        if fault := node_fault(resources, labels):
            problems.append(invalid(f"node:{name}", fault))
            resources, labels = {}, {}
        known = KnownNode(name=name, resources=resources, labels=labels, reported_at=reported_at, host_clock_at=host_clock_at)
        nodes[name] = NodeRow(id=id_, known=known, schedulable=schedulable)
    return nodes, backoffs


LATENCIES: tuple[Latency, ...] = ("ttft", "tpot", "e2e")
MODEL_FIELDS = (
    "id",
    "name",
    "scope__name",
    "mode",
    "priority",
    "min_replicas",
    "max_replicas",
    "scale_to_zero",
    "down_window_seconds",
    "drain_timeout_seconds",
    "scale_down_fraction",
    "served_names",
    "woken_at",
    "last_change_at",
    "short_since",
    "disagree_since",
    "created_at",
    "removals_rest_until",
    "probation",
    *(f"slo__{latency}_{part}" for latency in LATENCIES for part in ("percentile", "ms")),
)
NAME, WINDOW = MODEL_FIELDS.index("name"), MODEL_FIELDS.index("down_window_seconds")
DECISION_FIELDS = ("id", "outcome", "reason", "count", "is_advice", "numbers", "limited_by")
JSON_FIELDS = (
    "served_names",
    "probation",
    "last_decision__numbers",
    "last_decision__limited_by",
    "profiles__selector",
    "profiles__parameters",
)


def load_models(
    pool_id: int, settings: PoolSettings, now: datetime, problems: list[Problem]
) -> tuple[dict[str, ModelRow], dict[tuple[str, str], ProfileRow]]:
    """Models with their newest decision and their profiles in one query, and the demand of their windows in another."""
    decision = tuple(f"last_decision__{name}" for name in DECISION_FIELDS)
    profile = tuple(f"profiles__{name}" for name in PROFILE_FIELDS)
    joined = LanguageModel.objects.filter(pool_id=pool_id).order_by("name", "profiles__id")
    joined = joined.annotate(measure=is_one_of(BenchRun.objects.without_replica(now), "profile", "profiles__id"))
    found = list(columns(joined, (*MODEL_FIELDS, *decision, *profile, "measure"), JSON_FIELDS))
    peaks = window_peaks(pool_id, {row[WINDOW] for row in found}, settings.down_window_seconds, now)
    said = Json()
    models: dict[str, ModelRow] = {}
    profiles: dict[tuple[str, str], ProfileRow] = {}
    of_profile = len(MODEL_FIELDS) + len(DECISION_FIELDS)
    for row in found:
        name = row[NAME]
        if name not in models:
            models[name] = model_row(row[:of_profile], said, peaks, problems)
        if row[of_profile] is not None:
            own = profile_row(name, row[of_profile:], said, problems)
            profiles[name, own.name] = own
    return shared_names(models, problems), profiles


Peaks = Mapping[int, tuple[int | None, int]]


def window_peaks(pool_id: int, windows: set[int | None], default_seconds: int, now: datetime) -> Peaks:
    """Model → the highest demand of its own window, and how many passes in it had no bound. One query."""
    starts = {
        seconds: now - timedelta(seconds=min(default_seconds if seconds is None else seconds, 10**8))
        for seconds in {None, *windows}
    }
    inside = Sample.objects.filter(model__pool_id=pool_id, at__gte=min(starts.values())).order_by()
    own = [
        When(model__down_window_seconds=seconds, then=Value(start)) for seconds, start in starts.items() if seconds is not None
    ]
    if own:
        inside = inside.filter(at__gte=Case(*own, default=Value(starts[None])))
    # a count of what is there costs a count of the rows, one of what is missing a test of each
    rows = inside.values_list("model_id").annotate(Max("demand_high"), passes=Count("*"), known=Count("demand_high"))
    return {model_id: (peak, passes - known) for model_id, peak, passes, known in rows}


def model_row(row: Sequence[Any], said: Json, peaks: Peaks, problems: list[Problem]) -> ModelRow:
    values = dict(zip(MODEL_FIELDS, row[: len(MODEL_FIELDS)], strict=True))
    peak, unknown = peaks.get(values["id"], (None, 0))
    values["served_names"] = own_names(values["name"], said[values["served_names"]], problems)
    values["probation"] = said[values["probation"]]
    targets = targets_of(values)
    fraction = own_fraction(values, problems)
    return ModelRow(
        **{key: value for key, value in values.items() if "__" not in key and key != "scale_down_fraction"},
        scope=values["scope__name"],
        scale_down_fraction=fraction,
        demand_peak=peak,
        peak_unknown=bool(unknown),
        decision=decision_row(row[len(MODEL_FIELDS) :], said),
        targets=targets,
    )


def targets_of(values: Mapping[str, Any]) -> tuple[Target, ...]:
    """Those of an SLO of which both the percentile and the bound are set."""
    slo = ((latency, values[f"slo__{latency}_percentile"], values[f"slo__{latency}_ms"]) for latency in LATENCIES)
    return tuple(
        Target(latency=latency, percentile=percentile, bound_ms=bound)
        for latency, percentile, bound in slo
        if percentile is not None and bound is not None and 0 < percentile < 100
    )


def decision_row(row: Sequence[Any], said: Json) -> DecisionRow | None:
    if row[0] is None:
        return None
    *plain, numbers, limited_by = row
    return DecisionRow(**dict(zip(DECISION_FIELDS, (*plain, said[numbers], said[limited_by]), strict=True)))


PROFILE_FIELDS = (
    "id",
    "name",
    "resource",
    "units",
    "hosts",
    "priority",
    "state",
    "start_timeout_seconds",
    "template",
    "engine",
    "engine_version",
    "replacing_paused",
    "selector",
    "parameters",
)


def profile_row(model: str, row: Sequence[Any], said: Json, problems: list[Problem]) -> ProfileRow:
    *plain, selector, parameters, measure = row
    found = ProfileRow(
        model=model, measure=measure, **dict(zip(PROFILE_FIELDS, (*plain, said[selector], said[parameters]), strict=True))
    )
    if fault := profile_fault(found):
        problems.append(invalid(f"profile:{model} · {found.name}", fault))
        return replace(found, state="no_new", selector={}, units=max(1, found.units), hosts=max(1, found.hosts))
    return found


def domain_settings(settings: PoolSettings, problems: list[Problem]) -> Settings:
    """The pool's settings for the plan; a share that is none is named and the product's stands for it."""
    share = fraction(settings.scale_down_fraction)
    if share is None:
        text = settings.scale_down_fraction
        problems.append(invalid(f"pool:{settings.pool_id}", f"scale_down_fraction “{text}” is no share; 0.70 is used"))
        share = Settings().scale_down_fraction
    names = [f.name for f in fields(Settings) if f.name != "scale_down_fraction"]
    return Settings(scale_down_fraction=share, **{name: getattr(settings, name) for name in names})


def patience(settings: PoolSettings, watched_since: datetime | None) -> Patience:
    return Patience(
        watched_since=watched_since,
        node_silent_seconds=settings.node_silent_seconds,
        node_lost_seconds=settings.node_lost_seconds,
        stale_after_seconds=settings.stale_after_seconds,
    )
