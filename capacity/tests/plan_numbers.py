"""The numbers and the `limited_by` entries of a decision, checked against the snapshot."""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from capacity.tests.plan_ledger import Ledger, counts
from capacity.tests.plan_removals import candidates, kept_one_blocks, ready_capacity
from capacity.tests.snapshot_facts import ModelFacts, instant

Document = Mapping[str, Any]

LIMITED_KEYS = {
    "limit": {"kind", "scope", "target", "limit", "used"},
    "room": {"kind", "resource", "free", "largest_free"},
    "max_replicas": {"kind", "max"},
    "guarantee_reserved": {"kind", "scope", "units"},
    "step": {"kind", "max"},
    "unmeasured": {"kind", "profile"},
    "unable": {"kind", "profile"},
    "not_active": {"kind", "profile"},
    "backoff": {"kind", "profile", "until"},
    "unknown": {"kind", "store"},
}


def number_violations(snapshot: Document, model: ModelFacts, decision: Document, ledger: Ledger) -> Iterator[str]:
    if snapshot.get("replicas", []) is not None:
        wanted = {
            "demand_low": model.demand_low,
            "demand_high": model.demand_high,
            "capacity_ready": model.capacity_ready,
            "capacity_starting": model.capacity_starting,
        }
        for key, value in wanted.items():
            if decision[key] != value:
                yield f"{model.name}: {key} is {decision[key]}, it should be {value}"
        yield from answer_violations(model, decision)
    for entry in decision["limited_by"]:
        if set(entry) != LIMITED_KEYS.get(entry.get("kind")):
            yield f"{model.name}: keys of {entry}"
        elif not holds(entry, snapshot, model, ledger):
            yield f"{model.name}: {entry} is not so"


def answer_violations(model: ModelFacts, decision: Document) -> Iterator[str]:
    adds = {None if model.mode == "paused" or at_maximum(model, model.held) else model.capacity_ready + model.capacity_starting}
    if decision["outcome"] == "add" and at_maximum(model, model.held + decision["count"]):
        adds.add(None)
    if decision["adds_above"] not in adds:
        yield f"{model.name}: adds_above is {decision['adds_above']}, it should be {adds}"
    wanted = removes_below(model)
    if decision["removes_below"] not in wanted:
        yield f"{model.name}: removes_below is {decision['removes_below']}, it should be {wanted}"


def at_maximum(model: ModelFacts, held: int) -> bool:
    return model.maximum is not None and held >= model.maximum


def removes_below(model: ModelFacts) -> set[int | None]:
    """The smallest whole number not below θ × the ready capacity that stays; every open choice of first victim."""
    if model.mode == "paused" or model.live_count <= max(model.minimum, 1):
        return {None}
    firsts = candidates(model)[:1] if not model.stuck_and_removable else candidates(model)
    answers = {ceil(model.fraction * ready_capacity(model, without=victim)) or None for victim in firsts}
    open_choice = not firsts or model.stuck_and_removable or kept_one_blocks(model)
    return answers | ({None} if open_choice else set())


def holds(entry: Document, snapshot: Document, model: ModelFacts, ledger: Ledger) -> bool:
    kind = entry["kind"]
    if kind in ("unmeasured", "unable", "not_active", "backoff"):
        profile = model.profiles.get(entry["profile"])
        if profile is None:
            return False
        if kind == "backoff":
            # "the first end": of all nodes, or of those that would have the room
            return instant(entry["until"]) in set(map(instant, ledger.backed_off(profile).values()))
        return {
            "unmeasured": profile.concurrency is None,
            "unable": profile.concurrency == 0,
            "not_active": not profile.active,
        }[str(kind)]
    if kind == "max_replicas":
        return bool(entry["max"] == model.maximum)
    if kind == "step":
        return bool(entry["max"] == model.step)
    if kind == "unknown":
        store = entry["store"]
        return store in ("quotas", "measurements", "nodes") and (
            snapshot.get(store, []) is None or (store == "quotas" and snapshot.get("scopes", []) is None)
        )
    if kind == "room":
        return room_holds(entry, model, ledger)
    if kind == "limit":
        return limit_holds(entry, model, ledger)
    return any(q.get("guarantee") for q in snapshot.get("quotas") or [])


def room_holds(entry: Document, model: ModelFacts, ledger: Ledger) -> bool:
    """Between nothing and what was free before the pass, for some profile of the class; too little for a replica of it."""
    profiles = [p for p in model.profiles.values() if p.resource == entry["resource"]]
    rooms = [ledger.room(p) for p in profiles]
    return any(
        0 <= entry["largest_free"] <= entry["free"] <= free
        and entry["largest_free"] <= largest
        and (p.hosts > 1 or entry["largest_free"] < p.units)
        for p, (free, largest) in zip(profiles, rooms, strict=True)
    )


def limit_holds(entry: Document, model: ModelFacts, ledger: Ledger) -> bool:
    for row in ledger.rows:
        if (row["scope"], row["target"]) != (entry["scope"], entry["target"]):
            continue
        binds = any(row in ledger.binding(model, p) for p in model.profiles.values())
        prices = [
            1 if row["target"].startswith("model:") else p.total_units
            for p in model.profiles.values()
            if counts(row["target"], model, p)
        ]
        full = bool(prices) and entry["used"] + max(prices) > int(row["limit"])
        return binds and full and entry["limit"] == row["limit"] and entry["used"] >= ledger.used(row)
    return False
