"""The brake in a pass: between the plan and its record. What it withholds is recorded and not done."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from . import brake_rows
from .domain.brake import Event, Release, Situation, Standing, Withheld, exempt, holds, judge, recent, standing, together
from .domain.phrases import number
from .domain.types import Decision, LimitedBy, Plan
from .models import Brake, Lease
from .observation.observe import Gone
from .rows import ReplicaRow
from .snapshot import Built

if TYPE_CHECKING:
    from .recording.record import Turn

LIVED = frozenset({"ready", "unready"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """`plan`: what is to be done and what is only advice; its decisions say what is withheld. `news`: the models of which other
    actions are withheld than in the pass before. `rows`: what is withheld, as the brake's row keeps it."""

    plan: Plan
    withheld: tuple[Withheld, ...]
    rows: Sequence[brake_rows.Row]
    news: frozenset[str]
    events: tuple[Event, ...]
    release: Release | None
    is_on: bool


def hold(lease: Lease, built: Built, plan: Plan, now: datetime) -> Held:
    """Judges what the plan would do. Reads the brake again where there is something to do: a person may just have pulled it."""
    brake = lease.pool.brake
    asked = [action for action in plan.actions if not action.advice]
    if asked:
        brake.refresh_from_db()
    died = deaths(built, now)
    manual = brake_rows.manual(brake)
    # in a quiet pass nothing is looked at: the situation costs a walk over all replicas
    seen = situation(lease, built, died, now) if asked else Situation(release=brake_rows.release(brake), manual=manual)
    verdict = judge(asked, seen, brake_rows.bounds(lease.pool.settings), now)
    rows, news = compared(brake, verdict.withheld, now)
    kept = {id(found.action) for found in verdict.withheld}
    return Held(
        plan=replace(
            plan,
            actions=tuple(action for action in plan.actions if id(action) not in kept),
            decisions=told(plan.decisions, verdict.withheld),
        ),
        withheld=verdict.withheld,
        rows=rows,
        news=news,
        events=(*died, *verdict.events),
        release=verdict.release,
        is_on=holds(manual, now),
    )


def situation(lease: Lease, built: Built, died: Sequence[Event], now: datetime) -> Situation:
    """What the rules look at, from what this pass has seen."""
    brake, bounds = lease.pool.brake, brake_rows.bounds(lease.pool.settings)
    replicas = built.snapshot.replicas or ()
    events = brake_rows.events(brake)
    units: Counter[str] = Counter()
    for node in built.snapshot.nodes or ():
        units.update(node.resources)
    return Situation(
        ready=sum(1 for replica in replicas if replica.state == "ready"),
        units=units,
        sizes={key: (profile.resource, profile.units * profile.hosts) for key, profile in built.rows.profiles.items()},
        unready=frozenset(replica.name for replica in replicas if replica.state == "unready"),
        together=together(witnesses(built)),
        replaceable=replaceable(built, [*recent(events, bounds, now), *died]),
        events=events,
        manual=brake_rows.manual(brake),
        release=brake_rows.release(brake),
    )


def witnesses(built: Built) -> Iterator[Standing]:
    """What a sweep loads may turn unready by that, and says nothing of a probe."""
    for replica in built.snapshot.replicas or ():
        if replica.state in LIVED and replica.since is not None and not replica.under_test:
            row = built.rows.replicas.get(replica.name)
            yield Standing(
                model=replica.model,
                is_ready=replica.state == "ready",
                since=replica.since,
                ready_at=row.ready_at if row else None,
            )


def deaths(built: Built, now: datetime) -> tuple[Event, ...]:
    """Replicas that had been ready and that this pass finds ended by themselves."""
    dead = Counter(
        row.model
        for ended in (built.observed.gone if built.observed else ())
        if died(row := built.rows.replicas[ended.name], ended)
    )
    return tuple(Event(at=now, kind="death", model=model, count=count) for model, count in sorted(dead.items()))


def died(row: ReplicaRow, ended: Gone) -> bool:
    return row.state in LIVED and row.intent not in {"drain", "cancel"} and not ended.failed_start


def replaceable(built: Built, events: Iterable[Event]) -> Mapping[str, int]:
    """Model → starts that only put back what died, or what stood on hosts that are lost."""
    dead: Counter[str] = Counter(lost(built))
    replaced: Counter[str] = Counter()
    for event in events:
        if event.kind == "death":
            dead[event.model] += event.count
        elif event.kind == "replacement":
            replaced[event.model] += event.count
    stays = (replica for replica in built.snapshot.replicas or () if replica.state != "draining" and not replica.under_test)
    held = Counter(replica.model for replica in stays)
    models = built.rows.models
    return {
        model: exempt(count, replaced[model], models[model].min_replicas, held[model])
        for model, count in dead.items()
        if model in models
    }


def lost(built: Built) -> Iterator[str]:
    """The model of each replica on a host that has been silent for too long."""
    for name in built.observed.lost if built.observed else ():
        row = built.rows.replicas[name]
        if row.state in LIVED:
            yield row.model


def compared(brake: Brake, withheld: Iterable[Withheld], now: datetime) -> tuple[list[brake_rows.Row], frozenset[str]]:
    """The rows of what is withheld, each with the time since when it is; and the models of which something else is."""
    before: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for row in brake.withheld:
        before[brake_rows.sameness(row)].append(row["since"])
    rows: list[brake_rows.Row] = []
    news = set()
    for found in withheld:
        row = brake_rows.withheld_row(found, now)
        if since := before[brake_rows.sameness(row)]:
            row = {**row, "since": since.pop(0)}
        else:
            news.add(found.action.model)
        rows.append(row)
    news.update(key[1] for key, left in before.items() if left)
    return rows, frozenset(news)


def told(decisions: Sequence[Decision], withheld: Iterable[Withheld]) -> tuple[Decision, ...]:
    """The decisions; those of which something is withheld say so, with the rule."""
    by_model: dict[str, list[Withheld]] = defaultdict(list)
    for found in withheld:
        by_model[found.action.model].append(found)
    return tuple(
        with_brake(decision, by_model[decision.model]) if decision.model in by_model else decision for decision in decisions
    )


def with_brake(decision: Decision, withheld: Sequence[Withheld]) -> Decision:
    counts = Counter(found.rule for found in withheld)
    stops = tuple(LimitedBy(kind="brake", facts={"rule": rule, "withheld": count}) for rule, count in sorted(counts.items()))
    sentences = dict.fromkeys(found.why for found in withheld)
    why = f"{decision.why} The brake withholds {number(len(withheld), 'action')}: {' '.join(sentences)}"
    return replace(decision, limited_by=(*decision.limited_by, *stops), why=why)


def write(turn: Turn, held: Held) -> None:
    """The brake's row, inside the pass's transaction and only where something happened."""
    brake = turn.lease.pool.brake
    if brake.is_on and not held.is_on:
        switch_off(brake, turn.now)
    release = standing(held.release, turn.now)
    is_used = brake_rows.release_row(release) != brake.released
    if not (held.events or held.news or is_used):
        return
    bounds = brake_rows.bounds(turn.lease.pool.settings)
    events = [*recent(brake_rows.events(brake), bounds, turn.now), *held.events]
    mine = Brake.objects.filter(pk=brake.pk)
    mine.update(
        recent=[brake_rows.event_row(event) for event in events],
        withheld=held.rows,
        withheld_since=(brake.withheld_since or turn.now) if held.rows else None,
    )
    if is_used:
        # what a person releases meanwhile is not written over
        mine.filter(changed_at=brake.changed_at).update(released=brake_rows.release_row(release))


def switch_off(brake: Brake, now: datetime) -> None:
    """Its time has passed; unless a person has just pulled it again."""
    row = Brake.objects.select_for_update().get(pk=brake.pk)
    if row.changed_at != brake.changed_at:
        return
    row.is_on, row.until, row.reason, row.actor, row.changed_at = False, None, "its time has passed", "", now
    row._change_reason = row.reason
    row.save(update_fields=["is_on", "until", "reason", "actor", "changed_at"])
    brake.changed_at = now
