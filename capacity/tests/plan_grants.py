"""Undrains and starts, gone through in the order of the plan: room, limits, bounds, placement order, and what is left undone."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from math import ceil
from typing import Any

from capacity.tests.plan_ledger import Ledger
from capacity.tests.snapshot_facts import ModelFacts, ProfileFacts

Document = Mapping[str, Any]
STORES = ("quotas", "measurements", "scopes", "nodes")
LOAD = ("over_capacity", "reclaim_fill")


class Progress:
    """One model's grants so far."""

    def __init__(self, model: ModelFacts) -> None:
        self.model = model
        self.count, self.starts = 0, 0
        self.demand, self.capacity = model.demand_low, model.capacity_ready + model.capacity_starting
        self.undrained: list[str] = []
        self.profiles: set[str] = set()

    def floor_open(self) -> bool:
        return self.model.live_count + self.count < self.model.minimum

    def wake_open(self, profile: ProfileFacts) -> bool:
        if not self.model.wakes:
            return False
        wanted = max(1, ceil((self.model.held_requests or 0) / profile.concurrency)) if profile.concurrency else 1
        return self.count < wanted

    def load_open(self) -> bool:
        return self.demand > self.capacity

    def needs(self, profile: ProfileFacts) -> list[str]:
        """The needs that are still open and that a replica of this profile may be added for."""
        is_open = {"below_min": self.floor_open(), "wake": self.wake_open(profile), "over_capacity": self.load_open()}
        return [need for need, still in is_open.items() if still and profile.startable(need)]

    def step_reached(self) -> bool:
        return self.count >= self.model.step

    def grant(self, action: Document) -> None:
        self.count += 1
        if action["op"] == "start":
            self.starts += 1
            self.profiles.add(action["profile"])
            self.capacity += self.model.profiles[action["profile"]].concurrency or 0
            return
        replica = next(r for r in self.model.replicas if r["name"] == action["replica"])
        self.undrained.append(replica["name"])
        self.profiles.add(replica["profile"])
        self.demand += self.model.load(replica) or 0
        self.capacity += self.model.capacity_for_adding(replica)


def grant_violations(snapshot: Document, plan: Document, ledger: Ledger) -> Iterator[str]:
    replicas = {r["name"]: r for r in snapshot.get("replicas") or []}
    progress = {name: Progress(model) for name, model in ledger.models.items()}
    missing = [store for store in STORES if snapshot.get(store, []) is None]
    now, after_acting = ledger.copy(), ledger
    grants = [a for a in plan["actions"] if a["op"] in ("start", "undrain")]
    for action in grants:
        state = progress[str(action["model"] if action["op"] == "start" else replicas[action["replica"]]["model"])]
        if missing:
            yield f"{state.model.name}: {action['op']} though {missing} could not be read"
            return
        yield from one_grant(action, state, now, replicas)
        state.grant(action)
        if action["op"] == "start":
            now.start(action["model"], action["profile"], action["nodes"])
        if state.model.mode != "advise":
            after_acting = now.copy()
    yield from order_of_grants(grants, replicas, ledger)
    decisions = {d["model"]: d for d in plan["decisions"]}
    if snapshot.get("replicas", []) is None:
        return
    settled = not any(q.get("guarantee") for q in snapshot.get("quotas") or [])
    for name, state in progress.items():
        if state.model.mode != "paused":
            end = now if state.model.mode == "advise" else after_acting
            yield from undone(state, decisions[name], end, ledger, missing, settled)


def one_grant(action: Document, state: Progress, now: Ledger, replicas: Mapping[str, Document]) -> Iterator[str]:
    model = state.model
    profile = model.profiles[action["profile"] if action["op"] == "start" else replicas[action["replica"]]["profile"]]
    if not profile.active:
        yield f"{model.name}: {action['op']} on {profile.name}, which is {profile.state}"
    if action["op"] == "start":
        yield from one_start(action, state, profile, now)
    else:
        yield from one_undrain(replicas[action["replica"]], state, profile, now)
    if action["reason"] == "evacuate":
        if not profile.concurrency or action["op"] != "start" or state.count:
            yield f"{model.name}: {action} is no replacement of one on the way out"
        return
    if action["reason"] != model.need:
        yield f"{model.name}: {action['op']} for {action['reason']}, where the need is {model.need}"
    if not state.needs(profile):
        yield f"{model.name}: {action['op']} on {profile.name} of number {state.count + 1} is for no need that is left"
    if state.step_reached() and not state.floor_open():
        yield f"{model.name}: number {state.count + 1} is over the step of {model.step}"
    yield from passed_over(action, state, profile, now)


def one_start(action: Document, state: Progress, profile: ProfileFacts, now: Ledger) -> Iterator[str]:
    model, chosen = state.model, action["nodes"]
    if model.maximum is not None and model.held + state.starts + 1 > model.maximum:
        yield f"{model.name}: held {model.held + state.starts + 1} of at most {model.maximum}"
    for row in now.over(model, profile, 1):
        yield f"{model.name}: a start on {profile.name} breaks the limit {row['limit']} of {row['scope']} on {row['target']}"
    if len(set(chosen)) != profile.hosts or len(chosen) != profile.hosts:
        yield f"{model.name}: {profile.hosts} hosts, and it starts on {chosen}"
    if not set(chosen) <= set(now.open_nodes(profile)):
        yield f"{model.name}: {chosen} are not all schedulable, ready, matching and without back-off"
    best = now.best_fit(profile)
    if best is None:
        yield f"{model.name}: no room for {profile.name} on {chosen}"
    elif set(best) != set(chosen):
        yield f"{model.name}: {profile.name} on {chosen}, where {best} fit best"


def one_undrain(replica: Document, state: Progress, profile: ProfileFacts, now: Ledger) -> Iterator[str]:
    eligible = [r["name"] for r in undrainable(state, profile, now)]
    if replica["name"] not in eligible:
        yield f"{state.model.name}: {replica['name']} may not be taken back"
    elif eligible[0] != replica["name"]:
        yield f"{state.model.name}: {replica['name']} is taken back before {eligible[0]}"


def undrainable(state: Progress, profile: ProfileFacts, now: Ledger) -> list[Document]:
    """Draining replicas of a profile that may be taken back: least loaded first, then the latest to drain, then name."""
    model = state.model
    if not profile.active or now.over(model, profile) or not now.nodes_known:
        return []
    if model.maximum is not None and model.held + state.starts > model.maximum:
        return []
    found = [
        r for r in model.in_state("draining")
        if r["profile"] == profile.name
        and r["name"] not in state.undrained
        and r.get("drained_for") is None
        and r.get("drain_reason") != "start_timeout"
        and not r.get("outdated")
        and all(n in now.nodes and now.usable(n) for n in r["nodes"])
    ]  # fmt: skip
    return sorted(found, key=lambda r: undrain_key(model, r))


def undrain_key(model: ModelFacts, replica: Document) -> tuple[bool, int, timedelta, str]:
    load = model.load(replica)
    return load is None, load or 0, model.age(replica.get("since")), replica["name"]


def could_add(state: Progress, profile: ProfileFacts, now: Ledger) -> bool:
    """A replica of this profile can be had now: taken back or started."""
    if undrainable(state, profile, now):
        return True
    model = state.model
    at_maximum = model.maximum is not None and model.held + state.starts >= model.maximum
    return profile.active and not at_maximum and now.stopped_by(model, profile) is None


def passed_over(action: Document, state: Progress, profile: ProfileFacts, now: Ledger) -> Iterator[str]:
    """What comes earlier in placement order, or is draining on the same profile, goes before a start.

    A wake keeps to the profile of its first start, so only its first one is asked; with guarantees a quota may pass one over.
    """
    model = state.model
    if now.has_guarantees or (model.wakes and state.count):
        return
    if action["op"] == "start" and undrainable(state, profile, now):
        yield f"{model.name}: starts on {profile.name} while one of it could be taken back"
    for other in model.profiles.values():
        if other.placement_key < profile.placement_key and state.needs(other) and could_add(state, other, now):
            yield f"{model.name}: {action['op']} on {profile.name} before {other.name}"


def order_of_grants(grants: list[Document], replicas: Mapping[str, Document], ledger: Ledger) -> Iterator[str]:
    """Acting models before advice, floors before load, and load by priority, models without a scope last."""
    given: dict[str, int] = {}
    reached: tuple[int, ...] = ()
    for action in grants:
        model = ledger.models[action["model"] if action["op"] == "start" else replicas[action["replica"]]["model"]]
        given[model.name] = given.get(model.name, 0) + 1
        if action["reason"] == "below_min" and given[model.name] <= model.floor_missing:
            key: tuple[int, ...] = (model.mode == "advise", 1)
        elif action["reason"] in LOAD and not ledger.has_guarantees:
            key = (model.mode == "advise", 5 if model.scope is None else 4, -model.priority)
        else:
            continue
        if key < reached:
            yield f"{model.name}: {action} comes after a grant that it goes before"
        reached = max(reached, key)


def undone(state: Progress, decision: Document, end: Ledger, start: Ledger, missing: list[str], settled: bool) -> Iterator[str]:
    """What a model still needs at the end is out of reach, and the decision says why."""
    model = state.model
    if model.need is None or decision["reason"] == "evacuate":
        return
    profiles = sorted(model.profiles.values(), key=lambda p: p.placement_key)
    if not missing and settled:
        for profile in profiles:
            if model.wakes and state.profiles - {profile.name}:
                continue
            allowed = state.floor_open() or not state.step_reached()
            if state.needs(profile) and allowed and could_add(state, profile, end):
                yield f"{model.name}: {decision['reason']} with {state.count}, though {profile.name} can still be added"
    if model.need == "wake" and len(state.profiles) > 1:
        yield f"{model.name}: a wake takes one profile only, not {sorted(state.profiles)}"
    left = state.floor_open() or (not state.count if model.wakes else state.load_open())
    if left and not decision["limited_by"] and profiles and not model.reclaimed_for:
        yield f"{model.name}: more was needed and nothing in limited_by says what stopped it"
    if state.count == 0 and not model.stuck_and_removable and decision["reason"] != "over_limit":
        allowed_reasons = reasons_for_nothing(model, profiles, (start, end), missing, settled)
        if (decision["outcome"], decision["reason"]) not in {("hold", reason) for reason in allowed_reasons}:
            yield (
                f"{model.name}: {decision['outcome']} {decision['reason']} with the need {model.need},"
                f" where {sorted(allowed_reasons)} would do"
            )


def reasons_for_nothing(
    model: ModelFacts, profiles: list[ProfileFacts], ledgers: tuple[Ledger, Ledger], missing: list[str], settled: bool
) -> set[str]:
    if model.reclaimed_for:
        return {"awaiting_reclaim"}
    extra = set() if settled else {"guarantee_reserved", "awaiting_reclaim"}
    if model.maximum is not None and model.held >= model.maximum:
        return {"at_max"} | (extra - {"guarantee_reserved"})
    if set(missing) - {"nodes"}:
        return {"policy_unavailable"}
    need = "over_capacity" if model.need == "reclaim_fill" else str(model.need)
    startable = [p for p in profiles if p.startable(need)]
    if not startable:
        return {"unmeasured"}
    active = [p for p in startable if p.active]
    if not active:
        return {"not_active"}
    stops = {ledger.stopped_by(model, active[0]) for ledger in ledgers}
    return {stop for stop in stops if stop} | extra
