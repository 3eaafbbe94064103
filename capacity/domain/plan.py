"""The plan for a snapshot: one decision a model, the actions, and what is wrong in what was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from capacity.domain import measuring
from capacity.domain.counting import ratings_of
from capacity.domain.granting import Granter
from capacity.domain.load import Tally, tally
from capacity.domain.needs import Need, need_of, replacement
from capacity.domain.needs import measuring as need_to_measure
from capacity.domain.offer import granter_of
from capacity.domain.placement import Rating
from capacity.domain.problems import problems_of
from capacity.domain.removal import Verdict, removal
from capacity.domain.types import Action, Decision, LimitedBy, Model, Plan, Replica, Snapshot, Waiting
from capacity.domain.victims import Victims, kept_capacity, removes_below, victims
from capacity.domain.why import Story, why
from quotas.domain.policy import QuotaPolicy, build_policy


@dataclass(slots=True, kw_only=True)
class _Case:
    """One model in the course of a plan."""

    tally: Tally
    replicas: Sequence[Replica]
    found: Victims
    order: list[Rating]
    verdict: Verdict | None = None
    need: Need | None = None
    measured: list[Need] = field(default_factory=list)
    """What sweeps asked for, and what they got."""

    @property
    def model(self) -> Model:
        return self.tally.model

    @property
    def left_alone(self) -> bool:
        return self.model.bounds_conflict or self.model.mode == "paused"


def plan(snapshot: Snapshot, policy: QuotaPolicy | None = None) -> Plan:
    """Decide for every model. Pure: the same snapshot gives the same plan, whatever the order of its rows.

    `policy` is `build_policy(snapshot.scopes, snapshot.quotas)` where the caller has built it already.
    """
    if policy is None:
        # Without scopes no quota row says anything.
        policy = build_policy(snapshot.scopes or (), snapshot.quotas or () if snapshot.scopes is not None else ())
    cases = _cases(snapshot)
    granted = _grant(snapshot, cases, policy) if snapshot.replicas is not None else []
    decisions = tuple(_decide(case, snapshot) for case in cases)
    removals = [action for case in cases for action in _removals(case, snapshot)]
    removals.sort(key=lambda action: (action.model, action.replica or ""))
    problems = problems_of(snapshot, [case.tally for case in cases], policy)
    waiting = tuple(found for case in cases for found in _waiting(case, snapshot))
    return Plan(at=snapshot.at, actions=(*removals, *granted), decisions=decisions, problems=problems, waiting=waiting)


def _cases(snapshot: Snapshot) -> list[_Case]:
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
        cases.append(_Case(tally=counted, replicas=held, found=found, order=sorted(own.values(), key=Rating.order)))
    return cases


def _grant(snapshot: Snapshot, cases: Sequence[_Case], policy: QuotaPolicy) -> list[Action]:
    """Find what each model needs and give it: first to those that act, then, of what is left, to those that are advised."""
    promised = {r.drained_for for case in cases for r in case.tally.draining if r.drained_for not in (None, r.model)}
    for case in cases:
        if not case.left_alone:
            _ask(case, snapshot, case.model.name in promised)
    granter = granter_of(snapshot, [(case.tally, case.replicas) for case in cases], policy)
    needs = [case.need for case in cases if case.need is not None]
    granter.serve([need for need in needs if need.tally.model.mode != "advise"])
    # what is done comes before what is only advised
    for case in cases:
        _measure(case, granter, snapshot)
    granter.serve([need for need in needs if need.tally.model.mode == "advise"])
    return granter.granted


def _measure(case: _Case, granter: Granter, snapshot: Snapshot) -> None:
    """A replica for each sweep of the model that waits for one; paused and advised models too, since a person asked."""
    for rating in [] if case.model.bounds_conflict else measuring.asked(case.order):
        need = need_to_measure(case.tally, rating, snapshot.settings, snapshot.at, _started(case))
        granter.measure(need, rating)
        case.measured.append(need)


def _started(case: _Case) -> int:
    """How many of the model were started in this pass so far."""
    return (case.need.started if case.need else 0) + sum(len(need.actions) for need in case.measured)


def _waiting(case: _Case, snapshot: Snapshot) -> list[Waiting]:
    """The sweeps that got nothing, and why; where nothing is known, or the bounds contradict, that is why."""
    if snapshot.replicas is None or case.model.bounds_conflict:
        reason = "inventory_unknown" if snapshot.replicas is None else "bounds_conflict"
        return [measuring.waiting(case.model.name, r.name, (), reason) for r in measuring.asked(case.order)]
    empty = [need for need in case.measured if not need.actions]
    return [measuring.waiting(case.model.name, n.order[0].name, _limits(n), _unmet(n, snapshot)) for n in empty]


def _ask(case: _Case, snapshot: Snapshot, promised: bool) -> None:
    """What the model needs, or what becomes of it without a need."""
    settings, at = snapshot.settings, snapshot.at
    case.need = need_of(case.tally, case.order, promised, settings, at)
    if case.need is not None:
        return
    case.verdict = removal(case.found, settings)
    if case.verdict.outcome == "replace":
        case.need = replacement(case.tally, case.order, settings, at)


def _ended(case: _Case) -> list[Replica]:
    """Stuck replicas that are ended now, whatever else is decided."""
    return [] if case.left_alone else sorted((r for r in case.tally.stuck if r.removable), key=lambda r: r.name)


def _outcome(case: _Case, snapshot: Snapshot) -> Verdict:
    """Outcome and reason, `replace` meaning add; `start_timeout` stands for all that are ended.

    What is done for a sweep is only said where nothing else is done."""
    found = _own_outcome(case, snapshot)
    if found.outcome != "hold" or snapshot.replicas is None:
        return found
    if any(need.actions for need in case.measured):
        return Verdict(outcome="replace", reason="measure")
    return Verdict(outcome="remove", reason="measure") if measuring.given_back(case.tally, case.replicas) else found


def _own_outcome(case: _Case, snapshot: Snapshot) -> Verdict:
    model, need = case.model, case.need
    if snapshot.replicas is None:
        return Verdict(outcome="hold", reason="inventory_unknown")
    if model.mode == "paused":
        return Verdict(outcome="hold", reason="paused")
    if model.bounds_conflict:
        return Verdict(outcome="hold", reason="bounds_conflict")
    leaving = case.verdict.replica if case.verdict else None
    if need is not None and need.added:
        return Verdict(outcome="replace", reason=need.reason, replica=leaving)
    if _ended(case):
        return Verdict(outcome="remove", reason="start_timeout")
    if need is not None:
        return Verdict(outcome="hold", reason=_unmet(need, snapshot), replica=leaving)
    return case.verdict or Verdict(outcome="hold", reason="steady")


def _unmet(need: Need, snapshot: Snapshot) -> str:
    """Why a need got nothing: the first that applies."""
    if need.promised:
        return "awaiting_reclaim"
    if need.at_max:
        return "at_max"
    if snapshot.quotas is None or snapshot.scopes is None or snapshot.measurements is None:
        return "policy_unavailable"
    useful = [rating for rating in need.order if rating.serves(need.first_purpose)]
    active = [rating for rating in useful if rating.profile.state == "active"]
    if not active:
        return "not_active" if useful else "unmeasured"
    return next((need.stopped[rating.name] for rating in active if rating.name in need.stopped), "no_room")


def _removals(case: _Case, snapshot: Snapshot) -> list[Action]:
    verdict = _outcome(case, snapshot)
    ended = [_removal(case.model, replica, "start_timeout") for replica in _ended(case)] if snapshot.replicas is not None else []
    ended += measuring.given_back(case.tally, case.replicas)
    if verdict.outcome == "remove" and verdict.replica is not None:
        return [*ended, _removal(case.model, verdict.replica, verdict.reason)]
    return ended


def _removal(model: Model, replica: Replica, reason: str) -> Action:
    """A cancel of a starting one, a drain of a ready or unready one. Of `add_only` only the cancel of a stuck start acts."""
    cancel = replica.state == "starting"
    acts = model.mode == "auto" or (model.mode == "add_only" and cancel and reason == "start_timeout")
    return Action(
        op="cancel" if cancel else "drain",
        model=model.name,
        reason=reason,
        profile=replica.profile,
        replica=replica.name,
        advice=not acts,
    )


def _limits(need: Need) -> tuple[LimitedBy, ...]:
    """What stopped more, each once, in the order in which it was met."""
    found: list[LimitedBy] = []
    for stop in need.stops.values():
        if stop not in found:
            found.append(stop)
    return tuple(found)


def _decide(case: _Case, snapshot: Snapshot) -> Decision:
    counted = case.tally
    verdict = _outcome(case, snapshot)
    known = snapshot.replicas is not None
    count = _count(case, verdict)
    story = _story(case, verdict, snapshot)
    capacity = counted.capacity_ready + counted.capacity_starting
    return Decision(
        model=case.model.name,
        outcome=story.outcome,
        reason=verdict.reason,
        count=count,
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


def _count(case: _Case, verdict: Verdict) -> int:
    """Replicas added, or removed for that reason."""
    if verdict.outcome == "hold":
        return 0
    if verdict.reason == "measure":
        return _started(case) if verdict.outcome == "replace" else len(measuring.given_back(case.tally, case.replicas))
    if verdict.outcome == "replace":
        return case.need.added if case.need is not None else 0
    return len(_ended(case)) if verdict.reason == "start_timeout" else 1


def _story(case: _Case, verdict: Verdict, snapshot: Snapshot) -> Story:
    return Story(
        outcome="add" if verdict.outcome == "replace" else verdict.outcome,
        reason=verdict.reason,
        tally=case.tally,
        found=case.found,
        settings=snapshot.settings,
        need=case.need,
        measured=tuple(action for need in case.measured for action in need.actions),
        given_back=tuple(action.replica or "" for action in measuring.given_back(case.tally, case.replicas)),
        victim=verdict.replica,
        ended=_ended(case) if snapshot.replicas is not None else [],
        limited_by=_limits(case.need) if case.need is not None else (),
        measurements_known=snapshot.measurements is not None,
    )


def _rest(found: Victims) -> int | None:
    return kept_capacity(found, found.first) if found.first is not None and found.tally.live > 1 else None


def _wanted(case: _Case, verdict: Verdict) -> int:
    """Live ones, less a live one that goes, and with a need what was given and what is missing, up to the maximum."""
    live, need, most = case.tally.live, case.need, case.model.max_replicas
    if need is None:
        goes = verdict.replica if verdict.outcome == "remove" else None
        return live - 1 if goes is not None and goes not in case.tally.lapsed else live
    wanted = live + need.added + need.unmet
    return wanted if most is None else max(live, min(wanted, most))
