"""What a sweep would take: its levels and time, the replica that would be started for it, or the one that would be taken."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from ..bench.levels import parse_levels
from ..domain.measurement.slo_text import slo_text
from ..domain.phrases import number
from ..domain.plan import plan
from ..domain.types import Decision, Plan, Snapshot
from ..measuring.life import NONE_TO_TAKE, takeable
from ..measuring.wish import slo_of
from ..models import BenchRun, Measurement
from ..reconcile import pools, unbroken_since
from ..services import in_force, said_of
from ..snapshot import Built, build
from ..wiring import deps

WARM_UP_SECONDS: Final = 10
UNKNOWN_LEVELS: Final = 12
"""Levels of a search where nothing was measured: up to 64 and back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """`nodes`: where the next pass would start it; none: `why` says what is in the way."""

    nodes: tuple[str, ...]
    why: str
    is_drained_after: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """`replica` None: none is ready. `before`, `after`: requests in flight that the ready ones serve within the SLO; `now`: the
    most that are in flight. None is unknown. `starts`: what the next pass would start in its place."""

    replica: str | None
    ready: int
    before: int | None
    after: int | None
    now: int | None
    starts: int

    @property
    def is_last(self) -> bool:
        return self.replica is not None and self.ready == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`own`, `take` None: hosts and replicas cannot be read now, or the sweep is of an address outside. `in_force` None: the
    profile is unmeasured."""

    run: BenchRun
    levels: int
    seconds: int
    own: Own | None
    take: Take | None
    in_force: Measurement | None


def facts_of(run: BenchRun, now: datetime) -> Facts:
    """Of a run that is not stored. Reads the live pool; writes nothing."""
    held = in_force(run.profile)
    levels = likely_levels(run.levels, held.max_concurrency if held else None)
    seconds = levels * (run.seconds + WARM_UP_SECONDS)
    if run.endpoint:
        return Facts(run=run, levels=levels, seconds=seconds, own=None, take=None, in_force=held)
    lease = pools(pk=run.profile.model.pool_id)[0]
    built = build(deps(), lease, now, unbroken_since(lease, now))
    known = built.snapshot.replicas is not None
    return Facts(
        run=run,
        levels=levels,
        seconds=seconds,
        own=_own(run, built) if known else None,
        take=_take(run, built) if known else None,
        in_force=held,
    )


def likely_levels(levels: str, max_concurrency: int | None) -> int:
    """Those named, or those of a search for the limit that is in use (None: there is none)."""
    named = parse_levels(levels)
    if named is not None:
        return len(named)
    return UNKNOWN_LEVELS if not max_concurrency else 2 * math.ceil(math.log2(max_concurrency + 1)) + 1


def _own(run: BenchRun, built: Built) -> Own:
    model, profile = run.profile.model.name, run.profile.name
    profiles = tuple(replace(p, measure=(p.model, p.name) == (model, profile)) for p in built.snapshot.profiles)
    found = plan(replace(built.snapshot, profiles=profiles), built.policy)
    starts = [action for action in found.actions if action.reason == "measure" and action.op == "start"]
    return Own(
        nodes=starts[0].nodes if starts else (),
        why=found.waiting[0].why if found.waiting else "",
        is_drained_after=run.profile.model.mode != "auto",
    )


def _take(run: BenchRun, built: Built) -> Take:
    model = run.profile.model.name
    replicas = built.snapshot.replicas or ()
    ready = [r for r in replicas if r.model == model and r.state == "ready" and not r.under_test]
    of_now = set(takeable(run).values_list("name", flat=True))
    mine = [r for r in ready if r.profile == run.profile.name and r.name in of_now]
    taken = min(mine, key=lambda r: (r.in_flight is None, r.in_flight or 0, r.name), default=None)
    before = plan(built.snapshot, built.policy)
    after = plan(_without(built.snapshot, taken.name), built.policy) if taken else before
    decided, then = _decision(before, model), _decision(after, model)
    return Take(
        replica=taken.name if taken else None,
        ready=len(ready),
        before=decided.capacity_ready if decided else None,
        after=then.capacity_ready if then else None,
        now=decided.demand_high if decided else None,
        starts=max(0, _starts(after, model) - _starts(before, model)),
    )


def _without(snapshot: Snapshot, name: str) -> Snapshot:
    return replace(
        snapshot, replicas=tuple(replace(r, under_test=r.under_test or r.name == name) for r in snapshot.replicas or ())
    )


def _decision(found: Plan, model: str) -> Decision | None:
    return next((decision for decision in found.decisions if decision.model == model), None)


def _starts(found: Plan, model: str) -> int:
    return sum(action.model == model and action.op == "start" and not action.advice for action in found.actions)


# --- words
def sentences_of(facts: Facts) -> list[str]:
    """What is asked, how long, and what it takes where it runs; before all that, that no replica would stay."""
    said = [*asked_sentences(facts), place_sentence(facts), *replaced_sentences(facts)]
    return [last_sentence(facts), *said] if takes_last(facts) else said


def asked_sentences(facts: Facts) -> list[str]:
    """What is asked, and how long it takes."""
    run, slo = facts.run, slo_of(facts.run)
    kind = "the levels " + run.levels.replace(",", ", ") if run.levels != "auto" else f"about {facts.levels} levels, by search"
    prompts = ", each with the same prompt" if run.same_prompt else ""
    asked = (
        f"{kind.capitalize()}, {run.seconds} s each, {run.input_tokens} input and {run.output_tokens} output tokens a request, "
        f"against {slo_text(slo) if slo else 'no SLO'}{prompts}."
    )
    return [asked, f"It takes about {minutes(facts.seconds)} once it runs."]


def takes_last(facts: Facts) -> bool:
    """Whether the sweep, as it was asked for, leaves its model without a ready replica."""
    run = facts.run
    return not run.endpoint and not run.own_replica and facts.take is not None and facts.take.is_last


def last_sentence(facts: Facts) -> str:
    """Of a sweep that takes the only ready replica: what nobody serves meanwhile, and how long."""
    take = facts.take
    until = "until the sweep is over"
    until += " or what the next pass starts is ready" if take and take.starts else ""
    load = f" ({number(take.now, 'request')} in flight now)" if take and take.now is not None else ""
    return f"No replica stays: what comes{load} is held {until}, about {minutes(facts.seconds)}."


def replaced_sentences(facts: Facts) -> list[str]:
    """What the result would take the place of, and when it would not."""
    row = facts.in_force
    if row is None or facts.run.endpoint:
        return []
    if row.status != Measurement.Status.CURRENT:
        return [f"What it gives takes the place of {said_of(row).briefly}, which is {row.status_word}."]
    unless = "unless it says less than half of that, or less without having located the limit: then it is set aside"
    return [f"What it gives takes the place of {said_of(row).briefly}, {unless}."]


def minutes(seconds: int) -> str:
    return f"{max(1, round(seconds / 60))} min"


def place_sentence(facts: Facts) -> str:
    run = facts.run
    if run.endpoint:
        aside = "what it gives is set aside until somebody puts it in force"
        return f"It loads {run.endpoint}; nothing of the fleet is touched, and {aside}."
    if run.own_replica:
        return own_sentence(facts)
    return take_sentence(facts)


UNREAD: Final = "Hosts and replicas cannot be read at the moment, so nobody can tell what it takes."


def own_sentence(facts: Facts) -> str:
    own = facts.own
    if own is None:
        return UNREAD
    if not own.nodes:
        return own.why or "No replica could be started for it now."
    after = "it is drained after the sweep" if own.is_drained_after else "after the sweep it is one of the model's like any other"
    return f"A replica of its own is started on {', '.join(own.nodes)}; {after}."


def take_sentence(facts: Facts) -> str:
    take = facts.take
    if take is None:
        return UNREAD
    if take.replica is None:
        return NONE_TO_TAKE
    stay = f"{take.ready - 1} of {number(take.ready, 'ready replica')} stay"
    loads = f"{_shown(take.before)} → {_shown(take.after)} requests in flight within the SLO; now {_shown(take.now)}"
    starts = f" The next pass would start {number(take.starts, 'replica')} in its place." if take.starts else ""
    return f"{take.replica} is taken: {stay}, {loads}.{starts}"


def _shown(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def document(facts: Facts) -> dict[str, Any]:
    """The same as plain JSON."""
    own, take, run = facts.own, facts.take, facts.run
    return {
        "model": run.profile.model.name,
        "profile": run.profile.name,
        "levels": run.levels,
        "likely_levels": facts.levels,
        "likely_seconds": facts.seconds,
        "own": None if own is None else {"possible": bool(own.nodes), "nodes": list(own.nodes), "why": own.why},
        "take": None
        if take is None
        else {
            "replica": take.replica,
            "is_last": take.is_last,
            "ready": take.ready,
            "capacity_before": take.before,
            "capacity_after": take.after,
            "demand": take.now,
            "starts": take.starts,
        },
        "sentences": sentences_of(facts),
    }
