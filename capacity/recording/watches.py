"""The watch over removals around a pass: judged while the snapshot is built, begun and written with the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ..domain.clock import earlier
from ..domain.probation import (
    REST,
    WATCHED,
    Histograms,
    Reading,
    Target,
    Watch,
    document,
    judged,
    read,
    renewed,
    sentence,
    served,
)
from ..domain.types import Model, Plan
from ..models import Action, BenchRun, LanguageModel
from ..observation.observe import Observed
from ..ports import Latencies, MetricSource
from ..rows import ModelRow, Problem, Rows
from ..wiring import Deps
from . import bulk

if TYPE_CHECKING:
    from ..snapshot import Built
    from .record import Turn


def look(source: MetricSource, pool: str, rows: Rows, observed: Observed | None, now: datetime) -> dict[str, Watch]:
    """Model → its watch after another look, for those that are watched now. Redis is asked only where there is one.

    What a sweep does to its replica says nothing of a removal: that one is left out."""
    stored = ((row.name, read(row.probation)) for row in rows.models.values() if row.probation)
    found = {name: watch for name, watch in stored if watch is not None and watch.is_open}
    if not found or observed is None:
        return {}
    names = {present.name for present in observed.present if present.model in found}
    tested = {name for name, row in rows.replicas.items() if row.under_test}
    latencies = source.latencies(pool, names.union(*(watch.base for watch in found.values())) - tested)
    if latencies is None:
        return {model: judged(watch, rows.models[model].targets, None, now) for model, watch in found.items()}
    owners = {present.name: present.model for present in observed.present}
    swept = _swept(latencies, min(watch.since for watch in found.values()))
    return {model: judged(*_of(model, watch, rows, latencies, owners, swept), now) for model, watch in found.items()}


def _swept(names: Iterable[str], since: datetime) -> dict[str, datetime | None]:
    """Those that a sweep has loaded since: when the last one ended, None while one lasts. Asked only while a watch is open."""
    runs = BenchRun.objects.filter(replica__name__in=list(names), started_at__isnull=False).exclude(ended_at__lt=since)
    found: dict[str, datetime | None] = {}
    for name, ended in runs.order_by().values_list("replica__name", "ended_at"):
        before = found.get(name, ended)
        found[name] = None if before is None or ended is None else max(before, ended)
    return found


def _of(
    model: str,
    watch: Watch,
    rows: Rows,
    latencies: Mapping[str, Latencies],
    owners: Mapping[str, str],
    swept: Mapping[str, datetime | None],
) -> tuple[Watch, Sequence[Target], dict[str, Histograms]]:
    """What the watch is judged by: the model's replicas, the ones that went since among them."""
    mine = {
        name: Reading(at=found.at, histograms=found.histograms)
        for name, found in latencies.items()
        if name in watch.base or owners.get(name) == model
    }
    based, found = served(watch, mine, swept)
    return based, rows.models[model].targets, found


def resting(model: Model, row: ModelRow, watch: Watch | None, now: datetime, problems: list[Problem]) -> Model:
    """While removals rest the model keeps what it had before the one that was taken back, and nothing of it is a saving."""
    watch = watch or read(row.probation)
    watch = watch if watch is not None and watch.result == "failed" else None
    until = rests_until(row.removals_rest_until, watch, now)
    if until is None:
        return model
    problems.append({"code": "removals_rest", "subject": f"model:{row.name}", "detail": rest_sentence(watch, until)})
    floor = watch.floor if watch else 0
    most = floor if model.max_replicas is None else model.max_replicas
    return replace(model, min_replicas=max(model.min_replicas, min(floor, most)), demand_seconds=0)


def rest_sentence(watch: Watch | None, until: datetime) -> str:
    return f"{sentence(watch) if watch else ''} Removals rest until {until:%Y-%m-%d %H:%M} UTC.".strip()


def rests_until(stored: datetime | None, watch: Watch | None, now: datetime) -> datetime | None:
    """Until when removals rest, None where they do not; a verdict of this very pass is not stored yet."""
    if watch is not None and watch.decided_at == now and watch.result == "failed":
        return now + REST
    return stored if stored is not None and now < stored else None


def with_bases(deps: Deps, pool: str, built: Built, plan: Plan) -> Built:
    """What the engines had counted before the removals of this plan, for the watches that begin with them."""
    models = {action.model for action in plan.actions if action.reason in WATCHED and action.op == "drain" and not action.advice}
    if not models or built.observed is None:
        return built
    names = {present.name for present in built.observed.present if present.model in models}
    latencies = deps.loads.latencies(pool, names) or {}
    oldest = earlier(built.snapshot.at, built.snapshot.settings.stale_after_seconds)
    fresh = {name: found.histograms for name, found in latencies.items() if found.at >= oldest}
    return replace(built, bases={name: fresh.get(name, {}) for name in names})


def write_watches(turn: Turn, built: Built, plan: Plan, actions: Iterable[Action]) -> None:
    """The watches that were looked at or begin with an action that is done now. Where there is none nothing is asked."""
    changed = dict(built.watches)
    changed.update(_begun(turn, built, plan, actions))
    rows, rested = [], []
    for name, watch in changed.items():
        row = built.rows.models[name]
        until = rests_until(row.removals_rest_until, watch, turn.now)
        rows.append(LanguageModel(pk=row.id, probation=document(watch)))
        # the self-check may have let removals rest meanwhile: what did not change is not written over it
        if until != row.removals_rest_until:
            rested.append(LanguageModel(pk=row.id, removals_rest_until=until))
    bulk.update(rows, ["probation"])
    bulk.update(rested, ["removals_rest_until"])


def _begun(turn: Turn, built: Built, plan: Plan, actions: Iterable[Action]) -> dict[str, Watch]:
    rows = {row.id: row for row in built.rows.models.values()}
    wanted = {decision.model: decision.wanted for decision in plan.decisions}
    ready = {replica.name for replica in built.snapshot.replicas or () if replica.state == "ready"}
    owner = {present.name: present.model for present in built.observed.present} if built.observed else {}
    begun = {}
    for action in actions:
        if action.state != Action.State.PENDING or action.reason not in WATCHED or action.replica_name not in ready:
            continue
        row = rows[action.model_id]
        if rests_until(row.removals_rest_until, built.watches.get(row.name), turn.now):
            continue  # the verdict that they rest on stands until then
        base = {name: found for name, found in built.bases.items() if owner.get(name) == row.name}
        watch = _watch(turn, built, row, action, (wanted[row.name] or 0) + 1, base)
        begun[row.name] = renewed(watch, built.watches.get(row.name))
    return begun


def _watch(turn: Turn, built: Built, row: ModelRow, action: Action, floor: int, base: Mapping[str, Histograms]) -> Watch:
    own = row.down_window_seconds
    seconds = built.snapshot.settings.down_window_seconds if own is None else own
    until = turn.now + timedelta(seconds=min(seconds, 10**8))
    return Watch(replica=action.replica_name, since=turn.now, until=until, floor=floor, base=base)
