"""What it takes for a model to serve a demand, in the room and the quota there is: the reconciler's order, fit and limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

from capacity.domain.granting import Granter
from capacity.domain.needs import Need
from capacity.domain.placement import Rating
from capacity.domain.sizing.fleet import even_capacity, fleet_tokens, hold_line, last_whole_under
from capacity.domain.sizing.ground import Ground, ground_of
from capacity.domain.sizing.lacking import lacking, max_needed
from capacity.domain.sizing.notes import notes_of
from capacity.domain.sizing.question import Question
from capacity.domain.sizing.types import Alternative, Answer, PathRow, PlanRow, TightRow, VerdictWord
from capacity.domain.snapshot.document import instant
from capacity.domain.types import Action, LimitedBy, Snapshot
from quotas.domain.policy import QuotaPolicy

MOST_ALTERNATIVES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """A need that was granted what there is. `spare`: those given beyond the demand; `covering`: the starts that covered it."""

    granter: Granter
    need: Need
    covering: tuple[Action, ...]
    spare: int

    @property
    def is_covered(self) -> bool:
        return self.need.capacity >= self.need.demand


def target(snapshot: Snapshot, model: str, question: Question, policy: QuotaPolicy | None = None) -> Answer:
    """The answer. Pure: the same snapshot and question give the same one, whatever the order of rows. Raises `WrongQuestion`."""
    ground = ground_of(snapshot, model, question, policy)
    solved = _solve(ground, ground.order)
    verdict = _verdict(ground, solved)
    rows = _rows(ground, solved)
    served = Fraction(solved.need.capacity, ground.scale)
    added = Counter({row.profile: row.add for row in rows})
    line = hold_line(ground, added)
    missing = () if verdict == "fits" else lacking(ground, solved.granter, solved.need, question.spare - solved.spare)
    answer = Answer(
        model=model,
        at=instant(snapshot.at),
        question=question,
        verdict=verdict,
        served=served,
        share=min(Fraction(1), served / question.amount),
        rows=rows,
        binding=_binding(ground, solved.need),
        missing=missing,
        raise_max_to=None if verdict == "fits" else max_needed(ground, solved.need, question.spare - solved.spare),
        path=_path(ground, solved.granter, rows),
        hold_line=line,
        holds_until=None if line is None else last_whole_under(line),
        even_served=even_capacity(rows),
        tight=_tight(ground, solved) if question.tight else None,
        alternatives=_alternatives(ground, solved, verdict),
        on_empty_hardware=_on_empty_hardware(ground, verdict),
        fleet_tokens=fleet_tokens(rows),
        notes=(),
    )
    return notes_of(ground, answer)


def _solve(ground: Ground, order: Sequence[Rating]) -> Solved:
    """Cover the demand by the reconciler's own granting, then give the spare ones in the same order."""
    granter, need = ground.granter(), ground.need()
    need.order = order
    granter.serve([need])
    covering = tuple(granter.granted)
    spare = 0
    while need.capacity >= need.demand and spare < ground.question.spare and granter.one_more(need):
        spare += 1
    return Solved(granter=granter, need=need, covering=covering, spare=spare)


def _verdict(ground: Ground, solved: Solved) -> VerdictWord:
    if solved.is_covered and solved.spare == ground.question.spare:
        return "fits"
    if solved.need.capacity:
        return "partial"
    if ground.missing_stores or ground.snapshot.nodes is None:
        return "unknown"
    active = [rating for rating in ground.order if rating.profile.state == "active"]
    usable = any(rating.concurrency for rating in active)
    return "unknown" if not usable and any(rating.concurrency is None for rating in active) else "none"


def _rows(ground: Ground, solved: Solved) -> tuple[PlanRow, ...]:
    """A row for each profile with replicas that count or are added, in placement order."""
    have = Counter(replica.profile for replica in ground.serving)
    started: dict[str, list[tuple[str, ...]]] = {}
    for action in solved.granter.granted:
        started.setdefault(action.profile, []).append(action.nodes)
    ratings = sorted(ground.own.ratings.values(), key=Rating.order)
    return tuple(
        _row(ground, rating, have[rating.name], started.get(rating.name, ()))
        for rating in ratings
        if have[rating.name] or rating.name in started
    )


def _row(ground: Ground, rating: Rating, have: int, started: Sequence[tuple[str, ...]]) -> PlanRow:
    known = rating.concurrency is not None
    return PlanRow(
        profile=rating.name,
        resource=rating.profile.resource,
        have=have,
        add=len(started),
        units=len(started) * rating.units,
        units_each=rating.units,
        nodes=tuple(sorted(started)),
        hosts=rating.profile.hosts,
        each=Fraction(ground.gives(rating), ground.scale) if known else None,
        tokens_each=rating.tokens_per_unit * rating.units if known else None,
        measured=ground.evidence.get(rating.name),
    )


def _binding(ground: Ground, need: Need) -> tuple[LimitedBy, ...]:
    """What was in the way, each once, in the words of the answer."""
    found: list[LimitedBy] = []
    for key, stop in need.stops.items():
        named = _in_words_of_sizing(ground, key, stop)
        if named not in found:
            found.append(named)
    return tuple(found)


def _in_words_of_sizing(ground: Ground, key: tuple[str, ...], stop: LimitedBy) -> LimitedBy:
    """Fragmentation is room that is there and on no one node; what was measured to miss its target binds as the SLO does."""
    if stop.kind == "unable":
        return _renamed(stop, "slo", {})
    if stop.kind == "unmeasured" and ground.evidence.get(key[1]) == "stale":
        return _renamed(stop, "unmeasured", {"measured": "stale"})
    if stop.kind != "room":
        return stop
    enough = int(stop.facts["free"]) >= ground.own.ratings[key[1]].units
    return _renamed(stop, "fragmentation" if enough else "room", {"profile": key[1]})


def _renamed(stop: LimitedBy, kind: str, more: Mapping[str, str | int]) -> LimitedBy:
    return LimitedBy(kind=kind, facts={**stop.facts, **more})


def _path(ground: Ground, granter: Granter, rows: Sequence[PlanRow]) -> tuple[PathRow, ...]:
    """Each limit over the classes of the plan (without one: of the first profile), before and after."""
    before = ground.granter().ledger
    after = granter.ledger
    if before is None or after is None:
        return ()
    resources = [row.resource for row in rows if row.add] or [rating.profile.resource for rating in ground.order[:1]]
    found: dict[tuple[str, str], PathRow] = {}
    for resource in dict.fromkeys(resources):
        pairs = zip(before.standing(ground.model.name, resource), after.standing(ground.model.name, resource), strict=True)
        for old, new in pairs:
            row = PathRow(scope=old.scope, target=old.target, limit=old.limit, used=old.used, after=new.used)
            found[old.scope, old.target] = row
    return tuple(found.values())


def _tight(ground: Ground, solved: Solved) -> tuple[TightRow, ...]:
    """The plan with its last replica replaced by the smallest of the same priority that still covers the rest."""
    counts = Counter(action.profile for action in solved.granter.granted)
    replacement = _smaller(ground, solved) if solved.is_covered and solved.covering else None
    if replacement is not None:
        counts[solved.covering[-1].profile] -= 1
        counts[replacement.name] += 1
    return tuple(TightRow(profile=name, add=counts[name]) for name in (r.name for r in ground.order) if counts[name])


def _smaller(ground: Ground, solved: Solved) -> Rating | None:
    last = ground.own.ratings[solved.covering[-1].profile]
    given = sum(ground.gives(ground.own.ratings[action.profile]) for action in solved.covering[:-1])
    rest = ground.demand - ground.capacity - given
    peers = [
        rating
        for rating in ground.order
        if rating.profile.priority == last.profile.priority and rest <= ground.gives(rating) < ground.gives(last)
    ]
    peers.sort(key=lambda rating: (ground.gives(rating), rating.units, rating.name))
    spares = solved.granter.granted[len(solved.covering) :]
    kept = [*solved.covering[:-1], *spares]
    return next((rating for rating in peers if _also_fits(ground, kept, rating)), None)


def _also_fits(ground: Ground, kept: Sequence[Action], rating: Rating) -> bool:
    """Whether the replicas that stay, granted anew, leave room and limits for one of `rating`."""
    granter, need = ground.granter(), ground.need()
    for name in (*(action.profile for action in kept), rating.name):
        need.order = [ground.own.ratings[name]]
        if not granter.one_more(need):
            return False
    return True


def _alternatives(ground: Ground, solved: Solved, verdict: VerdictWord) -> tuple[Alternative, ...]:
    """Profiles that would do it alone, or better than the plan does, in placement order."""
    chosen = {action.profile for action in solved.granter.granted}
    if len(ground.order) < 2 or ground.missing_stores or (verdict == "fits" and not chosen):
        return ()
    usable = [r for r in ground.order if r.profile.state == "active" and ground.gives(r) and {r.name} != chosen]
    alone = (_alone(ground, rating) for rating in usable)
    served = Fraction(solved.need.capacity, ground.scale)
    better = (one for one in alone if one.verdict == "fits" or (verdict != "fits" and one.served > served))
    # no more are tried than are shown: each is a whole plan
    return tuple(islice(better, MOST_ALTERNATIVES))


def _on_empty_hardware(ground: Ground, verdict: VerdictWord) -> Fraction | None:
    """What could be served if no other model held hardware; None where that is what was asked, or nothing is lacking."""
    if verdict == "fits" or ground.question.room == "total" or ground.missing_stores:
        return None
    emptied = replace(ground, question=replace(ground.question, room="total"))
    return Fraction(_solve(emptied, ground.order).need.capacity, ground.scale)


def _alone(ground: Ground, rating: Rating) -> Alternative:
    solved = _solve(ground, [rating])
    added = len(solved.granter.granted)
    return Alternative(
        profile=rating.name,
        resource=rating.profile.resource,
        add=added,
        units=added * rating.units,
        served=Fraction(solved.need.capacity, ground.scale),
        verdict=_verdict(ground, solved),
    )
