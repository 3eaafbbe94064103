"""Which removals and which reasons to hold a snapshot allows for a model that is asked for nothing more."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from fractions import Fraction
from typing import Any

from capacity.tests.snapshot_facts import LONG_AGO, ModelFacts

Document = Mapping[str, Any]
Answer = tuple[str, str]
NOTHING_STARTED = {"at_max", "at_limit", "no_room", "room_unknown", "policy_unavailable", "not_active", "unmeasured"}
BY_QUOTA = {"reclaimed", "over_limit"}


def ready_capacity(model: ModelFacts, without: Document | None = None) -> int:
    """Capacity for removing of the ready ones; nothing is subtracted for a victim that is not ready."""
    return sum(model.profile_of(r).for_removing for r in model.ready if r is not without)


def age_key(model: ModelFacts, replica: Document) -> timedelta:
    return model.age(replica.get("since"))


def candidates(model: ModelFacts) -> list[Document]:
    """Victims in the order in which they are tried; where several may be first, in any order among them."""
    free = [r for r in model.replicas if r.get("removable", True) and not model.stuck(r)]
    starting = [r for r in free if r["state"] == "starting"]
    if starting:
        return starting
    known = [r for r in free if model.load(r) is not None]
    if any(r["state"] == "unready" for r in free):
        return [r for r in known if r["state"] == "unready"]
    return ready_candidates(model, [r for r in known if r["state"] == "ready"])


def ready_candidates(model: ModelFacts, ready: Sequence[Document]) -> list[Document]:
    """One a profile: the least loaded (of the cordoned ones, if any), youngest, first by name."""
    chosen = []
    for name in {r["profile"] for r in ready}:
        own = [r for r in ready if r["profile"] == name]
        cordoned = [r for r in own if model.evacuated(r)]
        chosen.append(min(cordoned or own, key=lambda r: (model.load(r), age_key(model, r), r["name"])))
    return sorted(chosen, key=lambda r: victim_key(model, r))


def victim_key(model: ModelFacts, replica: Document) -> tuple[Any, ...]:
    profile = model.profile_of(replica)
    return (
        not model.evacuated(replica), profile.priority, profile.for_removing > 0, profile.tokens_per_unit,
        model.load(replica), age_key(model, replica), replica["name"],
    )  # fmt: skip


def rest_is_under(model: ModelFacts, victim: Document) -> bool:
    """Rule 5: the peak is under θ × the capacity of the ready ones that stay."""
    peak = model.peak
    return peak is not None and peak < model.fraction * ready_capacity(model, without=victim)


def survivors_are_under(model: ModelFacts, victim: Document, those_that_count_nothing: bool) -> bool:
    """Rule 6. A survivor that counts 0 gets no share; whether it is asked at all is the reader's to say."""
    load = model.load(victim) or 0
    if victim["state"] == "starting" or load == 0:
        return True
    capacity = ready_capacity(model, without=victim)
    for survivor in model.ready:
        own = model.profile_of(survivor).for_removing
        if survivor is victim or (own == 0 and not those_that_count_nothing):
            continue
        share = Fraction(load * own, capacity) if capacity else Fraction(0)
        if not (model.load(survivor) or 0) + share < model.fraction * own:
            return False
    return True


def idle_for_long(model: ModelFacts) -> bool:
    """The idle clock of the last replica is over."""
    row = model.row
    times = [model.age(row[k]) for k in ("last_arrival_at", "woken_at") if row.get(k) is not None]
    if row.get("last_arrival_at") is None:
        times += [model.age(r.get("since")) for r in model.replicas if model.live(r)]
    return min(times, default=LONG_AGO) > timedelta(seconds=int(model.settings["idle_seconds"]))


def removal_violations(snapshot: Document, model: ModelFacts, decision: Document, actions: list[Document]) -> Iterator[str]:
    if snapshot.get("replicas", []) is None or model.mode == "paused":
        return
    ends = [a for a in actions if a["op"] in ("drain", "cancel")]
    stuck = {r["name"] for r in model.stuck_and_removable}
    timed_out = {a["replica"] for a in ends if a["reason"] == "start_timeout"}
    if stuck != timed_out:
        yield f"{model.name}: {sorted(stuck)} are stuck, {sorted(timed_out)} end for start_timeout"
    by_name = {r["name"]: r for r in model.replicas}
    for action in ends:
        if action["reason"] in {"reclaimed", "over_limit"}:
            yield from given_back_violations(model, by_name[action["replica"]], action)
    if BY_QUOTA & {a["reason"] for a in ends} or model.need:
        return
    voluntary = [by_name[a["replica"]] for a in ends if a["reason"] != "start_timeout"]
    yield from calm_violations(model, decision, voluntary)


def given_back_violations(model: ModelFacts, victim: Document, action: Document) -> Iterator[str]:
    if victim["state"] != "starting" and model.load(victim) is None:
        yield f"{model.name}: {action} of a replica of unknown load"
    if model.stuck_and_removable:
        yield f"{model.name}: {action}, though it has a stuck start"


def calm_violations(model: ModelFacts, decision: Document, victims: Sequence[Document]) -> Iterator[str]:
    """A model without a need does one of the things that the rules allow it, on a victim that they allow."""
    answer = (decision["outcome"], decision["reason"])
    allowed = calm_answers(model)
    if model.called and model.maximum == 0:  # off: the design leaves open if it is said that it was asked
        allowed |= {("hold", "awaiting_reclaim" if model.reclaimed_for else "at_max"): []}
    if answer not in allowed:
        yield f"{model.name}: {answer[0]} {answer[1]} without a need, where {sorted(allowed)} would do"
    elif answer[0] == "remove" and answer[1] != "start_timeout" and victims[0] not in allowed[answer]:
        yield f"{model.name}: {answer[1]} takes {victims[0]['name']}, not {[v['name'] for v in allowed[answer]]}"


def calm_answers(model: ModelFacts) -> dict[Answer, list[Document]]:
    """(outcome, reason) → the victims it may have, for a model that is asked for nothing more."""
    if model.stuck_and_removable:
        replaced = evacuation_answers(model, leaving(model)) if may_evacuate(model) else {}
        return {("remove", "start_timeout"): []} | {key: [] for key in replaced if key[0] == "add"}
    if model.demand_low > model.capacity_ready:
        return {("hold", "starting_covers"): []}
    if not model.replicas:
        answers: dict[Answer, list[Document]] = {("hold", "steady"): []}
        if model.samples_unknown or model.demand_high is None:
            answers["hold", "metrics_unknown"] = []
        return answers
    if model.samples_unknown:
        return {("hold", "metrics_unknown"): []}
    if model.in_state("draining"):
        peak_is_unknown = model.peak is None  # by the unknown load of a draining one: rule 1 may be said to fail before rule 2
        return {("hold", "draining"): []} | ({("hold", "metrics_unknown"): []} if peak_is_unknown else {})
    above = model.maximum is not None and model.held > model.maximum
    if above and model.live_count > max(model.minimum, 1):
        return above_max_answers(model)
    if leaving(model):
        return evacuation_answers(model, leaving(model))
    starting = model.starting
    if len(starting) > 1 or any(not r.get("removable", True) for r in starting):
        return {("hold", "starting_covers"): []}
    return ordinary_answers(model)


def leaving(model: ModelFacts) -> list[Document]:
    return [r for r in model.ready if r.get("removable", True) and model.evacuated(r)]


def may_evacuate(model: ModelFacts) -> bool:
    """The rules before evacuation hold: no need, nothing unknown, nothing draining, something on its way out."""
    asked = model.demand_low > model.capacity_ready or model.samples_unknown or bool(model.in_state("draining"))
    return not asked and bool(leaving(model))


def above_max_answers(model: ModelFacts) -> dict[Answer, list[Document]]:
    order = candidates(model)
    answers: dict[Answer, list[Document]] = {("hold", "not_removable"): []} if not order or kept_one_blocks(model) else {}
    if order:
        answers["remove", "above_max"] = order if order[0]["state"] != "ready" else order[:1]
    return answers


def kept_one_blocks(model: ModelFacts) -> bool:
    """One that is starting or unready is no candidate for it may not be removed: the design does not say if the ready are."""
    return any(r["state"] in ("starting", "unready") and not r.get("removable", True) for r in model.replicas)


def evacuation_answers(model: ModelFacts, on_the_way: Sequence[Document]) -> dict[Answer, list[Document]]:
    if model.starting:
        return {("hold", "starting_covers"): []}
    answers: dict[Answer, list[Document]] = {}
    if model.live_count <= 1:
        last = last_answers(model)
        if set(last) == {("remove", "idle")}:
            return last
        answers |= {key: value for key, value in last.items() if key == ("remove", "idle")}
    goes = [r for r in on_the_way if may_leave(model, r)]
    if goes:
        answers["remove", "evacuate"] = goes
    if any(r.get("outdated") for r in on_the_way) and model.peak is not None and model.peak > model.capacity_ready:
        answers["hold", "rest_over_threshold"] = []
    if len(goes) < len(on_the_way):
        answers["add", "evacuate"] = []
        answers |= {("hold", reason): [] for reason in NOTHING_STARTED | {"guarantee_reserved", "awaiting_reclaim"}}
    return answers


def may_leave(model: ModelFacts, replica: Document) -> bool:
    rest = model.capacity_ready - model.capacity_for_adding(replica)
    demand = model.peak if replica.get("outdated") else model.demand_high
    return demand is not None and demand <= rest and model.live_count - 1 >= max(model.minimum, 1)


def ordinary_answers(model: ModelFacts) -> dict[Answer, list[Document]]:
    if model.live_count <= max(model.minimum, 1):
        return last_answers(model)
    if model.cooling:
        return {("hold", "cooldown"): []}
    order = candidates(model)
    if not order:
        return {("hold", "not_removable"): []}
    if order[0]["state"] != "ready":
        return merged([verdict(model, victim, strict) for victim in order for strict in (True, False)])
    answers = merged([in_turn(model, order, strict) for strict in (True, False)])
    return answers | ({("hold", "not_removable"): []} if kept_one_blocks(model) else {})


def in_turn(model: ModelFacts, order: Sequence[Document], strict: bool) -> tuple[Answer, Document]:
    """The first candidate that passes 5 and 6, else why the very first does not."""
    verdicts = [verdict(model, victim, strict) for victim in order]
    return next((v for v in verdicts if v[0][0] == "remove"), verdicts[0])


def verdict(model: ModelFacts, victim: Document, strict: bool) -> tuple[Answer, Document]:
    reason = "rest_over_threshold"
    if rest_is_under(model, victim):
        if survivors_are_under(model, victim, strict):
            return ("remove", "rest_under_threshold"), victim
        reason = "survivor_over_threshold"
    if victim["state"] == "starting":
        return ("hold", "starting_covers"), victim
    if any(r is not victim and model.profile_of(r).doubted for r in model.ready):
        reason = "unmeasured"
    return ("hold", reason), victim


def merged(verdicts: Sequence[tuple[Answer, Document]]) -> dict[Answer, list[Document]]:
    answers: dict[Answer, list[Document]] = {}
    for answer, victim in verdicts:
        answers.setdefault(answer, []).append(victim)
    return answers


def last_answers(model: ModelFacts) -> dict[Answer, list[Document]]:
    """At the floor: the last one may go as idle, everything else holds."""
    if model.minimum > 0 or not model.row.get("scale_to_zero", False) or model.live_count > 1:
        return {("hold", "at_min"): []}
    last = [r for r in model.replicas if model.live(r)]
    if len(last) != 1 or len(model.replicas) != 1 or last[0]["state"] == "starting":
        return {("hold", r): [] for r in ("at_min", "idle_wait", "cooldown", "starting_covers", "not_removable")} | {
            ("remove", "idle"): [r for r in model.replicas if r["state"] != "starting"]
        }
    if model.demand_high != 0:
        return {("hold", "at_min"): []}
    waits = [r for r, so in (("cooldown", model.cooling), ("idle_wait", not idle_for_long(model))) if so]
    if waits:
        return {("hold", reason): [] for reason in waits}
    if not last[0].get("removable", True):
        return {("hold", "not_removable"): []}
    return {("remove", "idle"): last}
