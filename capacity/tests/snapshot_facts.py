"""A second reading of `llmgw.snapshot/1`: what a snapshot says, worked out from the document alone.

It shares no line with `capacity.domain`, so that a rule misread there does not agree with itself here.
Names follow the design: held, live, stuck, D_low, D_high, C_ready. Times are `timedelta` ages; None is unknown.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import isfinite
from typing import Any

LARGEST = 10**12
LONG_AGO = timedelta.max
SETTINGS: Mapping[str, Any] = {
    "scale_down_fraction": "0.70", "down_window_seconds": 300, "stale_after_seconds": 45, "start_timeout_seconds": 900,
    "unready_grace_seconds": 120, "drain_timeout_seconds": 600, "idle_seconds": 600, "wake_seconds": 120, "max_step_up": 4,
    "stale_measurements": "add_only",
}  # fmt: skip


def sample(value: object) -> int | None:
    """A whole number 0 … 10^12 (3.0 is 3); anything else is unknown."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if not isinstance(value, int) and not isfinite(value):
        return None
    return int(value) if value == int(value) and 0 <= value <= LARGEST else None


def exact(value: object) -> Fraction:
    """A decimal by its text, never by its binary value."""
    return Fraction(str(value))


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


class ProfileFacts:
    def __init__(self, row: Mapping[str, Any], measured: Mapping[str, Any] | None, stale_is_used: bool) -> None:
        self.model, self.name, self.resource = row["model"], row["name"], row["resource"]
        self.units, self.hosts = int(row["units"]), int(row.get("hosts", 1))
        self.priority, self.state = int(row.get("priority", 0)), row.get("state", "active")
        self.selector = row.get("selector") or {}
        self.start_timeout_seconds = row.get("start_timeout_seconds")
        self.total_units = self.units * self.hosts
        self.concurrency = None if measured is None else int(measured["max_concurrency"])
        self.status = None if measured is None else measured.get("status", "current")
        tokens = Fraction(0) if measured is None else exact(measured["tokens_per_second"])
        self.tokens_per_unit = tokens / self.total_units if self.total_units else tokens
        counted = self.status == "current" or (self.status == "stale" and stale_is_used)
        self.for_removing = (self.concurrency or 0) if counted else 0
        self.doubted = not counted

    @property
    def active(self) -> bool:
        return bool(self.state == "active")

    @property
    def placement_key(self) -> tuple[Any, ...]:
        """Priority, unmeasured last within it, tokens per unit, concurrency, name; what measured 0 comes last of all."""
        unmeasured = self.concurrency is None
        return (self.concurrency == 0, -self.priority, unmeasured, -self.tokens_per_unit, -(self.concurrency or 0), self.name)

    def startable(self, need: str) -> bool:
        """May a replica be started on it for this need (`below_min`, `wake`, or load)."""
        if need == "below_min":
            return True
        return self.concurrency is None if need == "wake" and self.concurrency is None else bool(self.concurrency)


class ModelFacts:
    """One model of a snapshot with its profiles and replicas, all counted for the instant `at`."""

    def __init__(self, document: Mapping[str, Any], row: Mapping[str, Any]) -> None:
        self.row, self.name, self.at = row, row["name"], instant(document["at"])
        self.settings = {**SETTINGS, **(document.get("settings") or {})}
        self.mode, self.priority, self.scope = row.get("mode", "auto"), int(row.get("priority", 0)), row.get("scope")
        self.minimum = int(row.get("min_replicas", 1))
        self.maximum = None if row.get("max_replicas") is None else int(row["max_replicas"])
        measured = {(m["model"], m["profile"]): m for m in document.get("measurements") or []}
        stale_is_used = self.settings["stale_measurements"] == "use"
        self.profiles = {
            p["name"]: ProfileFacts(p, measured.get((self.name, p["name"])), stale_is_used)
            for p in document.get("profiles") or []
            if p["model"] == self.name
        }
        self.replicas = [r for r in document.get("replicas") or [] if r["model"] == self.name]
        self.cordoned_nodes = {n["name"] for n in document.get("nodes") or [] if not n.get("schedulable", True)}
        self.reclaimed_for = any(
            r["state"] == "draining" and r.get("drained_for") == self.name for r in document.get("replicas") or []
        )

    def own(self, key: str) -> Any:
        """The model's own window, fraction or timeout, else the setting."""
        return self.settings[key] if self.row.get(key) is None else self.row[key]

    def age(self, text: str | None) -> timedelta:
        """How long ago; the future counts as just now, null as long ago."""
        return LONG_AGO if text is None else max(timedelta(0), self.at - instant(text))

    def passed(self, text: str | None, seconds: int) -> bool:
        return self.age(text) >= timedelta(seconds=int(seconds))

    def profile_of(self, replica: Mapping[str, Any]) -> ProfileFacts:
        return self.profiles[replica["profile"]]

    def in_state(self, *states: str) -> list[Mapping[str, Any]]:
        return [r for r in self.replicas if r["state"] in states]

    def stuck(self, replica: Mapping[str, Any]) -> bool:
        own = self.profile_of(replica).start_timeout_seconds
        timeout = self.settings["start_timeout_seconds"] if own is None else own
        return replica["state"] in ("starting", "unready") and self.passed(replica.get("since"), timeout)

    def live(self, replica: Mapping[str, Any]) -> bool:
        if replica["state"] == "ready":
            return True
        if replica["state"] == "draining" or self.stuck(replica):
            return False
        return replica["state"] == "starting" or not self.passed(replica.get("since"), self.settings["unready_grace_seconds"])

    def load(self, replica: Mapping[str, Any]) -> int | None:
        read_at = replica.get("sampled_at")
        apart = abs(self.at - instant(read_at)) if read_at is not None else timedelta(0)
        return None if apart > timedelta(seconds=int(self.settings["stale_after_seconds"])) else sample(replica.get("in_flight"))

    def evacuated(self, replica: Mapping[str, Any]) -> bool:
        """On a cordoned node, of a profile that retires, or outdated."""
        return (
            replica.get("outdated", False)
            or bool(self.cordoned_nodes & set(replica["nodes"]))
            or self.profile_of(replica).state == "retire"
        )

    def capacity_for_adding(self, replica: Mapping[str, Any]) -> int:
        measured = self.profile_of(replica).concurrency
        return measured if measured is not None else (self.load(replica) or 0)

    @property
    def held(self) -> int:
        return len(self.replicas)

    @cached_property
    def live_count(self) -> int:
        return sum(self.live(r) for r in self.replicas)

    @property
    def ready(self) -> list[Mapping[str, Any]]:
        return self.in_state("ready")

    @property
    def starting(self) -> list[Mapping[str, Any]]:
        """Starting and not stuck."""
        return [r for r in self.in_state("starting") if not self.stuck(r)]

    @property
    def stuck_and_removable(self) -> list[Mapping[str, Any]]:
        return [r for r in self.replicas if self.stuck(r) and r.get("removable", True)]

    @property
    def held_requests(self) -> int | None:
        return sample(self.row.get("held_requests", 0))

    @cached_property
    def demand_low(self) -> int:
        return (self.held_requests or 0) + sum(self.load(r) or 0 for r in self.ready)

    @cached_property
    def demand_high(self) -> int | None:
        parts = [self.held_requests]
        for replica in self.in_state("ready", "unready", "draining"):
            load = self.load(replica)
            parts.append(self.profile_of(replica).concurrency if load is None else load)
        return total(parts)

    @property
    def peak(self) -> int | None:
        """The highest demand of the window; None when it, or now's demand, is not known."""
        if self.row.get("demand_peak") is None:
            return self.demand_high
        past = sample(self.row["demand_peak"])
        return None if past is None or self.demand_high is None else max(past, self.demand_high)

    @cached_property
    def capacity_ready(self) -> int:
        return sum(self.capacity_for_adding(r) for r in self.ready)

    @cached_property
    def capacity_starting(self) -> int:
        return sum(self.profile_of(r).concurrency or 0 for r in self.starting)

    @property
    def samples_unknown(self) -> bool:
        """Rule 1 of Remove."""
        loads = [self.load(r) for r in self.in_state("ready", "unready")]
        return None in loads or self.held_requests is None or self.peak_unknown

    @property
    def peak_unknown(self) -> bool:
        return self.row.get("demand_peak") is not None and sample(self.row["demand_peak"]) is None

    @property
    def floor_missing(self) -> int:
        return max(0, self.minimum - self.live_count)

    @property
    def wakes(self) -> bool:
        return self.called and self.maximum != 0

    @property
    def called(self) -> bool:
        """What wakes a model that is not off."""
        if self.live_count:
            return False
        recent = timedelta(seconds=int(self.settings["wake_seconds"]))
        return bool(self.held_requests) or any(self.age(self.row.get(k)) <= recent for k in ("last_arrival_at", "woken_at"))

    @property
    def over_capacity(self) -> bool:
        return self.demand_low > self.capacity_ready + self.capacity_starting

    @property
    def need(self) -> str | None:
        """The reason that an add would have, None when nothing is asked."""
        if self.floor_missing:
            return "below_min"
        if self.wakes:
            return "wake"
        if self.over_capacity:
            return "reclaim_fill" if self.reclaimed_for else "over_capacity"
        return None

    @property
    def cooling(self) -> bool:
        """Rule 4 of Remove fails: the last change is too recent, or the window is not covered."""
        window = int(self.own("down_window_seconds"))
        covered = self.row.get("demand_seconds")
        return not self.passed(self.row.get("last_change_at"), window) or (covered is not None and covered < window)

    @property
    def step(self) -> int:
        return max(int(self.settings["max_step_up"]), self.live_count)

    @property
    def fraction(self) -> Fraction:
        return exact(self.own("scale_down_fraction"))


def total(parts: Iterable[int | None]) -> int | None:
    known = list(parts)
    return None if None in known else sum(part for part in known if part is not None)


def read_models(document: Mapping[str, Any]) -> dict[str, ModelFacts]:
    return {row["name"]: ModelFacts(document, row) for row in document.get("models") or []}


def ancestors(document: Mapping[str, Any]) -> dict[str, set[str]]:
    """Scope → itself and all that its parents reach; parents that do not exist are dropped."""
    parents = {row["name"]: row.get("parents") or [] for row in document.get("scopes") or []}
    reached = {}
    for scope in parents:
        seen, queue = {scope}, [scope]
        while queue:
            fresh = {p for p in parents[queue.pop()] if p in parents} - seen
            seen |= fresh
            queue += fresh
        reached[scope] = seen
    return reached
