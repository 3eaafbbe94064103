"""The plan for a snapshot: one decision a model, the actions, and what is wrong in what was read."""

from __future__ import annotations

from collections.abc import Sequence

from capacity.domain import measuring
from capacity.domain.cases import Case, limits_of, unmet
from capacity.domain.counting import ratings_of
from capacity.domain.giving.course import give_back
from capacity.domain.granting import Granter
from capacity.domain.load import tally
from capacity.domain.needs import Need, need_of, replacement
from capacity.domain.needs import measuring as need_to_measure
from capacity.domain.offer import granter_of
from capacity.domain.placement import Rating
from capacity.domain.problems import problems_of
from capacity.domain.removal import Verdict, removal
from capacity.domain.types import Action, Decision, Plan, Replica, Snapshot, Waiting
from capacity.domain.victims import Victims, kept_capacity, removes_below, victims
from capacity.domain.why import Story, why
from capacity.domain.wishes import Wishes
from quotas.domain.policy import QuotaPolicy, build_policy
from quotas.domain.standings import standings_of
from quotas.domain.types import Standing


def plan(snapshot: Snapshot, policy: QuotaPolicy | None = None) -> Plan:
    """Decide for every model. Pure: the same snapshot gives the same plan, whatever the order of its rows.

    `policy` is `build_policy(snapshot.scopes, snapshot.quotas)` where the caller has built it already.
    """
    if policy is None:
        # Without scopes no quota row says anything.
        policy = build_policy(snapshot.scopes or (), snapshot.quotas or () if snapshot.scopes is not None else ())
    cases = _cases(snapshot)
    granted, standings = _grant(snapshot, cases, policy) if snapshot.replicas is not None else ([], ())
    decisions = tuple(_decide(case, snapshot) for case in cases)
    removals = [action for case in cases for action in case.removals(snapshot)]
    removals.sort(key=lambda action: (action.model, action.replica or ""))
    problems = problems_of(snapshot, [case.tally for case in cases], policy)
    waiting = tuple(found for case in cases for found in _waiting(case, snapshot))
    return Plan(
        at=snapshot.at,
        actions=(*removals, *granted),
        decisions=decisions,
        problems=problems,
        waiting=waiting,
        standings=standings,
    )


def _cases(snapshot: Snapshot) -> list[Case]:
    """Every model counted, by name."""
    ratings = ratings_of(snapshot)
    replicas: dict[str, list[Replica]] = {}
    for replica in snapshot.replicas or ():
        replicas.setdefault(replica.model, []).append(replica)
    cordoned = frozenset(node.name for node in snapshot.nodes or () if not node.schedulable)
    cases = []
    for model in sorted(snapshot.models, key=lambda model: model.name):
        own = ratings.get(model.name, {})
        held = replicas.get(model.name, ())
        counted = tally(model, own, held, snapshot.settings, snapshot.at)
        found = victims(counted, cordoned, snapshot.settings.scale_down_fraction, snapshot.at)
        cases.append(Case(tally=counted, replicas=held, found=found, order=sorted(own.values(), key=Rating.order)))
    return cases


def _grant(snapshot: Snapshot, cases: Sequence[Case], policy: QuotaPolicy) -> tuple[list[Action], tuple[Standing, ...]]:
    """Find what each model needs and give it: first to those that act, which then may have others give back for them, and of
    what is left to those that are advised."""
    promised = {r.drained_for for case in cases for r in case.tally.draining if r.drained_for not in (None, r.model)}
    for case in cases:
        if not case.left_alone:
            _ask(case, snapshot, case.model.name in promised)
    ended = {case.model.name: case.leaving() for case in cases}
    granter = granter_of(snapshot, [(case.tally, case.replicas) for case in cases], policy, ended=ended)
    acting, advised = _needs(cases)
    wishes = Wishes(granter.ledger)
    wishes.take_up(acting)
    granter.serve(acting)
    # what is done comes before what is only advised
    for case in cases:
        _measure(case, granter, snapshot)
    give_back(snapshot, cases, granter, acting)
    standings = standings_of(granter.ledger) if granter.ledger is not None else ()
    if advised:
        wishes.take_up(advised)
        granter.serve(advised)
    return granter.granted, standings


def _needs(cases: Sequence[Case]) -> tuple[list[Need], list[Need]]:
    """Those that act and those that are only advised."""
    needs = [case.need for case in cases if case.need is not None]
    acting = [need for need in needs if need.tally.model.mode != "advise"]
    return acting, [need for need in needs if need.tally.model.mode == "advise"]


def _measure(case: Case, granter: Granter, snapshot: Snapshot) -> None:
    """A replica for each sweep of the model that waits for one; paused and advised models too, since a person asked."""
    for rating in [] if case.model.bounds_conflict else measuring.asked(case.order):
        need = need_to_measure(case.tally, rating, snapshot.settings, snapshot.at, case.started)
        granter.measure(need, rating)
        case.measured.append(need)


def _waiting(case: Case, snapshot: Snapshot) -> list[Waiting]:
    """The sweeps that got nothing, and why; where nothing is known, or the bounds contradict, that is why."""
    if snapshot.replicas is None or case.model.bounds_conflict:
        reason = "inventory_unknown" if snapshot.replicas is None else "bounds_conflict"
        return [measuring.waiting(case.model.name, r.name, (), reason) for r in measuring.asked(case.order)]
    empty = [need for need in case.measured if not need.actions]
    return [measuring.waiting(case.model.name, n.order[0].name, limits_of(n), unmet(n, snapshot)) for n in empty]


def _ask(case: Case, snapshot: Snapshot, promised: bool) -> None:
    """What the model needs, or what becomes of it without a need."""
    settings, at = snapshot.settings, snapshot.at
    case.need = need_of(case.tally, case.order, promised, settings, at)
    if case.need is not None:
        return
    case.verdict = removal(case.found, settings)
    if case.verdict.outcome == "replace":
        case.need = replacement(case.tally, case.order, settings, at)


def _decide(case: Case, snapshot: Snapshot) -> Decision:
    counted = case.tally
    verdict = case.outcome(snapshot)
    known = snapshot.replicas is not None
    story = _story(case, verdict, snapshot)
    capacity = counted.capacity_ready + counted.capacity_starting
    return Decision(
        model=case.model.name,
        outcome=story.outcome,
        reason=verdict.reason,
        count=case.count(verdict),
        demand_low=counted.demand_low,
        demand_high=counted.demand_high if known else None,
        capacity_ready=counted.capacity_ready if known else None,
        capacity_starting=counted.capacity_starting if known else None,
        adds_above=None if case.left_alone or counted.at_max or not known else capacity,
        removes_below=None if case.left_alone or not known else removes_below(case.found),
        limited_by=story.limited_by,
        why=why(story),
        rest_capacity=_rest(case.found) if known else None,
        wanted=_wanted(case, verdict) if known else None,
    )


def _story(case: Case, verdict: Verdict, snapshot: Snapshot) -> Story:
    return Story(
        outcome="add" if verdict.outcome == "replace" else verdict.outcome,
        reason=verdict.reason,
        tally=case.tally,
        found=case.found,
        settings=snapshot.settings,
        need=case.need,
        measured=tuple(action for need in case.measured for action in need.actions),
        given_back=tuple(action.replica or "" for action in case.given_back()),
        returned=tuple(case.returned),
        over=case.over,
        own=case.own_removal(),
        victim=verdict.replica,
        ended=case.ended() if snapshot.replicas is not None else [],
        limited_by=limits_of(case.need) if case.need is not None else (),
        measurements_known=snapshot.measurements is not None,
    )


def _rest(found: Victims) -> int | None:
    return kept_capacity(found, found.first) if found.first is not None and found.tally.live > 1 else None


def _wanted(case: Case, verdict: Verdict) -> int:
    """Live ones, less those that go, and with a need what was given and what is missing, up to the maximum."""
    live, need, most = case.tally.live, case.need, case.model.max_replicas
    if verdict.outcome == "remove" and verdict.reason in ("reclaimed", "over_limit"):
        gone = [back.replica for back in case.returned] or ([case.over[0]] if case.over else [])
        gone += [own] if (own := case.own_removal()) is not None else []
        live -= sum(1 for replica in gone if replica not in case.tally.lapsed)
    if need is None:
        goes = verdict.replica if verdict.outcome == "remove" and verdict.reason not in ("reclaimed", "over_limit") else None
        return live - 1 if goes is not None and goes not in case.tally.lapsed else live
    wanted = live + need.added + need.unmet
    return wanted if most is None else max(live, min(wanted, most))
