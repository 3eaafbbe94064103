"""What is free and what is used while the actions of a plan are gone through one by one."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from capacity.tests.snapshot_facts import ModelFacts, ProfileFacts, ancestors, instant, read_models


class Ledger:
    """Rooms of nodes and uses of quotas by every replica that holds hardware, and by the starts given so far."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.models = read_models(document)
        self.at = instant(document["at"])
        self.nodes = {n["name"]: n for n in document.get("nodes") or []}
        self.nodes_known = document.get("nodes", []) is not None
        self.reach = ancestors(document)
        self.rows = [q for q in document.get("quotas") or [] if q.get("limit") is not None]
        self.has_guarantees = any(q.get("guarantee") for q in document.get("quotas") or [])
        self.backoffs = list(document.get("backoffs") or [])
        self.taken: dict[tuple[str, str], int] = {}
        self.kept: dict[str, int] = {}
        self.holdings: list[tuple[ModelFacts, ProfileFacts]] = []
        for model in self.models.values():
            for replica in model.replicas:
                self._hold(model, model.profile_of(replica), replica["nodes"])
                if replica["state"] == "starting" and not replica["nodes"]:
                    profile = model.profile_of(replica)
                    self.kept[profile.resource] = self.kept.get(profile.resource, 0) + profile.total_units

    def _hold(self, model: ModelFacts, profile: ProfileFacts, nodes: Sequence[str]) -> None:
        self.holdings.append((model, profile))
        for node in nodes:
            key = (node, profile.resource)
            self.taken[key] = self.taken.get(key, 0) + profile.units

    def copy(self) -> "Ledger":
        other = copy(self)
        other.taken, other.holdings = dict(self.taken), list(self.holdings)
        return other

    def start(self, model: str, profile: str, nodes: Sequence[str]) -> None:
        self._hold(self.models[model], self.models[model].profiles[profile], nodes)

    def free(self, node: str, resource: str) -> int:
        return max(0, int(self.nodes[node]["resources"].get(resource, 0)) - self.taken.get((node, resource), 0))

    def usable(self, node: str) -> bool:
        return bool(self.nodes[node].get("schedulable", True) and self.nodes[node].get("ready", True))

    def matches(self, node: str, profile: ProfileFacts) -> bool:
        labels = self.nodes[node].get("labels") or {}
        return self.usable(node) and all(labels.get(k) == v for k, v in profile.selector.items())

    def backed_off(self, profile: ProfileFacts) -> dict[str, str]:
        """Node → end, of the back-offs of this profile that still hold; nodes that are not listed are ignored."""
        return {
            b["node"]: b["until"]
            for b in self.backoffs
            if (b["model"], b["profile"]) == (profile.model, profile.name)
            and instant(b["until"]) > self.at
            and b["node"] in self.nodes
        }

    def open_nodes(self, profile: ProfileFacts) -> list[str]:
        away = self.backed_off(profile)
        return [n for n in self.nodes if self.matches(n, profile) and n not in away]

    def class_free(self, resource: str) -> int:
        """Free over schedulable and ready nodes, beyond what starting replicas without a node wait for."""
        return sum(self.free(n, resource) for n in self.nodes if self.usable(n)) - self.kept.get(resource, 0)

    def best_fit(self, profile: ProfileFacts) -> list[str] | None:
        """The nodes that a start would take now, None where there is no room."""
        if not self.nodes_known or self.class_free(profile.resource) < profile.total_units:
            return None
        fitting = sorted(
            (self.free(n, profile.resource), n)
            for n in self.open_nodes(profile)
            if self.free(n, profile.resource) >= profile.units
        )
        return [n for _, n in fitting[: profile.hosts]] if len(fitting) >= profile.hosts else None

    def room(self, profile: ProfileFacts) -> tuple[int, int]:
        """`free` and `largest_free` as a `room` entry of limited_by counts them."""
        beyond = max(0, self.class_free(profile.resource))
        each = [self.free(n, profile.resource) for n in self.open_nodes(profile)]
        return min(sum(each), beyond), min(max(each, default=0), beyond)

    def binding(self, model: ModelFacts, profile: ProfileFacts) -> list[Mapping[str, Any]]:
        """The limits that a replica of this profile counts against."""
        if model.scope is None:
            return []
        above = self.reach.get(model.scope, {model.scope})
        return [row for row in self.rows if row["scope"] in above and counts(row["target"], model, profile)]

    def used(self, row: Mapping[str, Any]) -> int:
        """Units held under a row by all models that its scope reaches down to, each model once."""
        per_replica = row["target"].startswith("model:")
        return sum(
            1 if per_replica else profile.total_units
            for model, profile in self.holdings
            if model.scope is not None
            and row["scope"] in self.reach.get(model.scope, {model.scope})
            and counts(row["target"], model, profile)
        )

    def over(self, model: ModelFacts, profile: ProfileFacts, more: int = 0) -> list[Mapping[str, Any]]:
        """The limits that are exceeded, or would be with `more` replicas."""
        return [row for row in self.binding(model, profile) if self.used(row) + more * price(row, profile) > int(row["limit"])]

    def stopped_by(self, model: ModelFacts, profile: ProfileFacts) -> str | None:
        """Why no replica of this profile can be started now; None when one can."""
        if self.over(model, profile, 1):
            return "at_limit"
        if not self.nodes_known:
            return "room_unknown"
        return "no_room" if self.best_fit(profile) is None else None


def price(row: Mapping[str, Any], profile: ProfileFacts) -> int:
    return 1 if row["target"].startswith("model:") else profile.total_units


def counts(target: str, model: ModelFacts, profile: ProfileFacts) -> bool:
    """Does a replica of this profile count against the target: its class, a path above it by segments, or its model."""
    if target.startswith("model:"):
        return bool(target == "model:" + model.name)
    return bool(profile.resource == target or profile.resource.startswith(target + "/"))
