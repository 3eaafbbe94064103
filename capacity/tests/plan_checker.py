"""What every plan must keep, whatever the snapshot: `violations(snapshot_document, plan_document) -> list[str]`.

An empty list is a plan that breaks nothing. The rules are those of the design documents, read from the two documents alone;
where the design leaves a choice open (a tie, the order of two reasons that hold together) every choice passes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from capacity.tests.plan_grants import grant_violations
from capacity.tests.plan_ledger import Ledger
from capacity.tests.plan_numbers import number_violations
from capacity.tests.plan_removals import removal_violations
from capacity.tests.snapshot_facts import ModelFacts

Document = Mapping[str, Any]

ADD = {"below_min", "wake", "over_capacity", "reclaim_fill", "evacuate"}
REMOVE = {"above_max", "rest_under_threshold", "idle", "start_timeout", "evacuate", "reclaimed", "over_limit"}
HOLD = {
    "steady", "starting_covers", "rest_over_threshold", "survivor_over_threshold", "at_min", "at_max", "cooldown", "draining",
    "idle_wait", "metrics_unknown", "unmeasured", "no_room", "at_limit", "guarantee_reserved", "awaiting_reclaim", "not_active",
    "not_removable", "policy_unavailable", "inventory_unknown", "room_unknown", "bounds_conflict", "paused", "lease_lost",
}  # fmt: skip
REASONS = {"add": ADD, "remove": REMOVE, "hold": HOLD}
OF_THE_PASS = {"bounds_conflict", "lease_lost"}
PROBLEMS = {
    "cycle", "unknown_parent", "assumed_funding", "limit_below_guarantee", "cut", "scaled", "guarantee_not_leaf", "no_owner",
    "unknown_node", "hotspot",
}  # fmt: skip
ACTION_KEYS = {
    "start": {"op", "model", "profile", "nodes", "reason"},
    "undrain": {"op", "replica", "reason"},
    "drain": {"op", "replica", "reason"},
    "cancel": {"op", "replica", "reason"},
}
ENDS_STATE = {"undrain": {"draining"}, "drain": {"ready", "unready"}, "cancel": {"starting"}}
DECISION_KEYS = {
    "model", "outcome", "reason", "count", "demand_low", "demand_high", "capacity_ready", "capacity_starting", "adds_above",
    "removes_below", "limited_by", "why",
}  # fmt: skip


def violations(snapshot: Document, plan: Document) -> list[str]:
    """Every broken rule, one sentence each, naming the model or replica. The snapshot must be a valid one."""
    found = list(shape_violations(snapshot, plan))
    if found:
        return found
    ledger = Ledger(snapshot)
    found += action_violations(snapshot, plan, ledger)
    if found:
        return found
    by_model = actions_by_model(snapshot, plan)
    decisions = {d["model"]: d for d in plan["decisions"]}
    for name, model in ledger.models.items():
        found += decision_violations(snapshot, model, decisions[name], by_model[name])
        found += number_violations(snapshot, model, decisions[name], ledger)
        found += removal_violations(snapshot, model, decisions[name], by_model[name])
    found += grant_violations(snapshot, plan, ledger)
    found += problem_violations(snapshot, plan, ledger)
    return found


def shape_violations(snapshot: Document, plan: Document) -> Iterator[str]:
    if set(plan) != {"format", "at", "actions", "decisions", "problems"}:
        yield f"the plan's keys are {sorted(plan)}"
        return
    if plan["format"] != "llmgw.plan/1" or plan["at"] != snapshot["at"]:
        yield f"format {plan['format']} at {plan['at']}"
    names = [d.get("model") for d in plan["decisions"]]
    if names != sorted(m["name"] for m in snapshot.get("models") or []):
        yield f"not one decision a model, by name: {names}"
    for decision in plan["decisions"]:
        if set(decision) != DECISION_KEYS:
            yield f"{decision.get('model')}: keys of the decision: {sorted(set(decision) ^ DECISION_KEYS)}"
        elif decision["reason"] not in REASONS.get(decision["outcome"], set()) - OF_THE_PASS:
            yield f"{decision['model']}: {decision['outcome']} {decision['reason']} is not in the list"
        elif not isinstance(decision["why"], str) or not decision["why"].strip():
            yield f"{decision['model']}: no sentence says why"
    for action in plan["actions"]:
        extra = set(action) - ACTION_KEYS.get(action["op"], set()) - {"advice"}
        if action["op"] not in ACTION_KEYS or not ACTION_KEYS[action["op"]] <= set(action) or extra - {"for"}:
            yield f"keys of the action {action}"
        if ("for" in action) != (action["reason"] == "reclaimed" and action["op"] in ("drain", "cancel")):
            yield f"`for` goes with reclaimed, and only with it: {action}"


def action_violations(snapshot: Document, plan: Document, ledger: Ledger) -> Iterator[str]:
    """References, states, order and advice of the actions."""
    replicas = {r["name"]: r for r in snapshot.get("replicas") or []}
    profiles = {(p["model"], p["name"]) for p in snapshot.get("profiles") or []}
    touched: set[str] = set()
    for action in plan["actions"]:
        if action["op"] == "start":
            if (action["model"], action["profile"]) not in profiles or not set(action["nodes"]) <= set(ledger.nodes):
                yield f"refers to what does not exist: {action}"
            continue
        name = action["replica"]
        if name not in replicas:
            yield f"refers to what does not exist: {action}"
            continue
        if name in touched:
            yield f"{name}: two actions on one replica"
        touched.add(name)
        if replicas[name]["state"] not in ENDS_STATE[action["op"]]:
            yield f"{name}: {action['op']} of a {replicas[name]['state']} replica"
        if action["op"] != "undrain" and not replicas[name].get("removable", True):
            yield f"{name}: {action['op']} of a replica that is not removable"
    if {a["replica"] for a in plan["actions"] if a["op"] != "start"} <= set(replicas):
        yield from order_violations(plan, replicas)
        yield from mode_violations(plan, replicas, ledger)


def model_of(action: Document, replicas: Mapping[str, Document]) -> str:
    return str(action["model"] if action["op"] == "start" else replicas[action["replica"]]["model"])


def order_violations(plan: Document, replicas: Mapping[str, Document]) -> Iterator[str]:
    ends = [a for a in plan["actions"] if a["op"] in ("drain", "cancel")]
    if plan["actions"][: len(ends)] != ends:
        yield "drains and cancels do not come first"
    keys = [(model_of(a, replicas), a["replica"]) for a in ends]
    if keys != sorted(keys):
        yield f"drains and cancels are not by model and name: {keys}"


def mode_violations(plan: Document, replicas: Mapping[str, Document], ledger: Ledger) -> Iterator[str]:
    for action in plan["actions"]:
        mode = ledger.models[model_of(action, replicas)].mode
        own = action["op"] in ("start", "undrain") or (action["op"] == "cancel" and action["reason"] == "start_timeout")
        advised = mode == "advise" or (mode == "add_only" and not own)
        if mode == "paused":
            yield f"an action on a paused model: {action}"
        elif action.get("advice", False) is not advised or ("advice" in action and not advised):
            yield f"advice of a model in mode {mode}: {action}"
        if action["reason"] in ("reclaimed", "over_limit") and mode != "auto":
            yield f"only auto models give back: {action}"


def actions_by_model(snapshot: Document, plan: Document) -> dict[str, list[Document]]:
    replicas = {r["name"]: r for r in snapshot.get("replicas") or []}
    found: dict[str, list[Document]] = {m["name"]: [] for m in snapshot.get("models") or []}
    for action in plan["actions"]:
        found[model_of(action, replicas)].append(action)
    return found


def decision_violations(snapshot: Document, model: ModelFacts, decision: Document, actions: list[Document]) -> Iterator[str]:
    """The decision and its actions say the same; holds that the state of the snapshot forces."""
    adds = [a for a in actions if a["op"] in ("start", "undrain")]
    ends = [a for a in actions if a["op"] in ("drain", "cancel")]
    where, reason = f"{model.name}: {decision['outcome']} {decision['reason']} {decision['count']}", decision["reason"]
    if decision["outcome"] == "add":
        if decision["count"] != len(adds) or not adds or {a["reason"] for a in adds} != {reason}:
            yield f"{where}, but its actions are {adds}"
        if {a["reason"] for a in ends} - {"start_timeout", "reclaimed", "over_limit"}:
            yield f"{where}, and with it {ends}"
    elif adds:
        yield f"{where}, but it has {adds}"
    elif decision["outcome"] == "remove":
        counted = [a for a in ends if a["reason"] == reason]
        if decision["count"] != len(counted) or not counted or len(counted) != len(ends):
            yield f"{where}, but its actions are {ends}"
        if reason not in ("start_timeout", "reclaimed") and len(counted) != 1:
            yield f"{where}: one victim a model a pass"
    elif decision["count"] != 0 or ends:
        yield f"{where}, but its actions are {ends}"
    forced = "inventory_unknown" if snapshot.get("replicas", []) is None else "paused" if model.mode == "paused" else None
    if forced and (decision["outcome"], reason) != ("hold", forced):
        yield f"{where}: must hold {forced}"
    if not forced and reason in ("inventory_unknown", "paused"):
        yield f"{where}: is not so"


def problem_violations(snapshot: Document, plan: Document, ledger: Ledger) -> Iterator[str]:
    listed = [(p.get("code"), p.get("subject")) for p in plan["problems"]]
    for problem in plan["problems"]:
        if set(problem) != {"code", "subject", "detail"} or problem["code"] not in PROBLEMS or not problem["detail"]:
            yield f"keys or code of the problem {problem}"
    if len(listed) != len(set(listed)):
        yield f"a problem stands twice: {sorted(listed)}"
    subjects = {f"{kind}:{row['name']}" for kind in ("scope", "model", "replica") for row in snapshot.get(kind + "s") or []}
    yield from (f"a problem of what does not exist: {subject}" for _, subject in listed if subject not in subjects)
    for code, wanted in expected_problems(snapshot, ledger).items():
        stands = {subject for listed_code, subject in listed if listed_code == code}
        if stands != wanted:
            yield f"problem {code}: {sorted(stands)} stand, {sorted(wanted)} are so"
    yield from hotspot_violations(listed, ledger)


def expected_problems(snapshot: Document, ledger: Ledger) -> dict[str, set[str]]:
    parents = {s["name"]: s.get("parents") or [] for s in snapshot.get("scopes") or []}
    expected = {"no_owner": {f"model:{m.name}" for m in ledger.models.values() if m.scope is None}}
    expected["unknown_parent"] = {f"scope:{s}" for s, above in parents.items() if set(above) - set(parents)}
    expected["cycle"] = {f"scope:{s}" for s, above in parents.items() if any(s in ledger.reach[p] for p in above if p in parents)}
    if ledger.nodes_known:
        expected["unknown_node"] = {
            f"replica:{r['name']}" for m in ledger.models.values() for r in m.replicas if misplaced(m, r, ledger)
        }
    return expected


def misplaced(model: ModelFacts, replica: Document, ledger: Ledger) -> bool:
    if replica["state"] == "starting" and not replica["nodes"]:
        return False
    return not set(replica["nodes"]) <= set(ledger.nodes) or len(replica["nodes"]) != model.profile_of(replica).hosts


def hotspot_violations(listed: list[tuple[str, str]], ledger: Ledger) -> Iterator[str]:
    """A ready replica over its own measured concurrency, while the total fits, is named by its name or its model's."""
    subjects = {subject for code, subject in listed if code == "hotspot"}
    for model in ledger.models.values():
        hot = [r for r in model.ready if (model.load(r) or 0) > (model.profile_of(r).concurrency or float("inf"))]
        names = {f"model:{model.name}"} | {f"replica:{r['name']}" for r in model.replicas}
        if hot and model.demand_low <= model.capacity_ready and not names & subjects:
            yield f"{model.name}: {hot[0]['name']} is hot, and nothing says so"
        measured_zero = any(model.profile_of(r).concurrency == 0 for r in model.ready)
        if names & subjects and not hot and not measured_zero:
            yield f"{model.name}: no replica is hot"
