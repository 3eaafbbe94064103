"""What a fleet is after a plan, as documents: `apply`, and a little fleet in which time goes on."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import timedelta
from typing import Any

from capacity.tests.snapshot_facts import instant
from capacity.tests.strategies import moment

Document = dict[str, Any]
Plan = Callable[[Document], Document]


def apply(snapshot: Mapping[str, Any], plan: Mapping[str, Any]) -> Document:
    """The snapshot of the same instant once the plan's actions were given; advice is not.

    A cancelled start is draining: its hardware is free only once it is gone.
    """
    after: Document = deepcopy(dict(snapshot))
    by_name = {r["name"]: r for r in after.get("replicas") or []}
    changed = set()
    for number, action in enumerate(plan["actions"]):
        if action.get("advice"):
            continue
        changed.add(action["model"] if action["op"] == "start" else by_name[action["replica"]]["model"])
        if action["op"] == "start":
            after["replicas"].append(started(action, after["at"], number))
        else:
            by_name[action["replica"]].update(ended(action, after["at"]))
    for model in after["models"]:
        if model["name"] in changed:
            model["last_change_at"] = after["at"]
    return after


def started(action: Mapping[str, Any], at: str, number: int) -> Document:
    return {
        "name": f"new-{at}-{number}", "model": action["model"], "profile": action["profile"], "nodes": list(action["nodes"]),
        "state": "starting", "since": at,
    }  # fmt: skip


def ended(action: Mapping[str, Any], at: str) -> Document:
    if action["op"] == "undrain":
        return {"state": "ready", "since": at, "drain_reason": None}
    return {"state": "draining", "since": at, "drain_reason": action["reason"], "drained_for": action.get("for")}


def step(snapshot: Document, plan: Document, seconds: int, starts_take: int, drains_take: int) -> Document:
    """The plan is applied and time goes on: starts turn ready, drained ones are gone."""
    after = apply(snapshot, plan)
    now = instant(after["at"]) + timedelta(seconds=seconds)
    after["at"] = moment(0, now)
    kept, ready_now = [], set()
    for replica in after["replicas"]:
        age = now - instant(replica["since"])
        if replica["state"] == "draining" and age >= timedelta(seconds=drains_take):
            continue
        if replica["state"] == "starting" and age >= timedelta(seconds=starts_take):
            replica |= {"state": "ready", "since": after["at"]}
            ready_now.add(replica["model"])
        kept.append(replica)
    after["replicas"] = kept
    for model in after["models"]:
        if model["name"] in ready_now:
            model["last_change_at"] = after["at"]
    return after


def spread(snapshot: Document, demand: Mapping[str, int]) -> None:
    """Give every model's demand to its ready replicas, in proportion to what they were measured to serve; else it is held."""
    measured = {(m["model"], m["profile"]): m["max_concurrency"] for m in snapshot["measurements"]}
    for model in snapshot["models"]:
        own = [r for r in snapshot["replicas"] if r["model"] == model["name"]]
        ready = sorted((r for r in own if r["state"] == "ready"), key=lambda r: r["name"])
        for replica in own:
            replica["in_flight"] = 0
        model["held_requests"] = 0 if ready else demand[model["name"]]
        model["demand_peak"] = demand[model["name"]]
        if demand[model["name"]]:
            model["last_arrival_at"] = snapshot["at"]
        weights = [measured.get((r["model"], r["profile"]), 0) for r in ready]
        for replica, load in zip(ready, shares(demand[model["name"]], weights), strict=True):
            replica["in_flight"] = load


def shares(demand: int, weights: Sequence[int]) -> list[int]:
    """Whole shares in proportion to the weights (equal where all are 0), the largest remainders first."""
    if not weights:
        return []
    parts = list(weights) if sum(weights) else [1] * len(weights)
    whole = [demand * w // sum(parts) for w in parts]
    by_remainder = sorted(range(len(parts)), key=lambda i: (-(demand * parts[i] % sum(parts)), i))
    for i in by_remainder[: demand - sum(whole)]:
        whole[i] += 1
    return whole
