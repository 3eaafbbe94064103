"""Snapshot documents for tests, small and complete: `plan_of(snapshot(models=[model("chat")]))`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from capacity.domain import plan_json

Document = dict[str, Any]
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def ago(seconds: float) -> str:
    """The instant so many seconds before the snapshot's, as JSON has it; a negative number is in the future."""
    return (AT - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def snapshot(**overrides: Any) -> Document:
    """An empty, valid snapshot with the given top-level keys replaced."""
    return {"format": "llmgw.snapshot/1", "at": ago(0), **overrides}


def model(name: str = "chat", **overrides: Any) -> Document:
    return {"name": name, **overrides}


def profile(name: str = "p", **overrides: Any) -> Document:
    """One unit of gpu/h100 for the model `chat`."""
    return {"model": "chat", "name": name, "resource": "gpu/h100", "units": 1, **overrides}


def measurement(concurrency: int = 10, **overrides: Any) -> Document:
    return {"model": "chat", "profile": "p", "max_concurrency": concurrency, "tokens_per_second": 300, **overrides}


def replica(name: str = "r1", **overrides: Any) -> Document:
    """A ready replica of two hours without load."""
    found = {"name": name, "model": "chat", "profile": "p", "nodes": ["n1"], "state": "ready", "since": ago(7200), "in_flight": 0}
    return {**found, **overrides}


def ready(*loads: Any, **overrides: Any) -> list[Document]:
    """Ready replicas r0, r1, … with these loads."""
    return [replica(f"r{number}", in_flight=load, **overrides) for number, load in enumerate(loads)]


def node(name: str = "n1", units: int = 100, **overrides: Any) -> Document:
    return {"name": name, "resources": {"gpu/h100": units}, **overrides}


def fleet(replicas: Sequence[Document] | None = (), concurrency: int = 10, units: int = 100, **overrides: Any) -> Document:
    """One model `chat` with one measured profile `p`, its replicas, and a node with room; other keys replace whole lists,
    and a mapping `chat` or `settings` adds to the model or the settings."""
    chat: Mapping[str, Any] = overrides.pop("chat", {})
    document = {
        "nodes": [node(units=units)],
        "models": [model(**chat)],
        "profiles": [profile()],
        "measurements": [measurement(concurrency)],
        "replicas": None if replicas is None else list(replicas),
    }
    return snapshot(**{**document, **overrides})


def decision_of(document: Document, name: str = "chat") -> Document:
    """The decision on a model."""
    found: Document = next(decision for decision in plan_json(document)["decisions"] if decision["model"] == name)
    return found


def answer(document: Document, name: str = "chat") -> tuple[str, str, int]:
    """Outcome, reason and count of a model."""
    found = decision_of(document, name)
    return found["outcome"], found["reason"], found["count"]


def actions(document: Document) -> list[tuple[str, str, str]]:
    """Each action as op, what (the replica, or profile@nodes of a start) and reason."""
    return [
        (action["op"], action.get("replica") or f"{action['profile']}@{'+'.join(action['nodes'])}", action["reason"])
        for action in plan_json(document)["actions"]
    ]


def hold(reason: str) -> tuple[str, str, int]:
    return ("hold", reason, 0)
