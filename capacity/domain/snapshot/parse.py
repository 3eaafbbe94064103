"""A parsed JSON document to a `Snapshot`, or every fault that it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capacity.domain.snapshot.faults import Faults, InvalidSnapshot, shown
from capacity.domain.snapshot.rows import IDENTITY, KEYS, REQUIRED, SETTINGS, read_object
from capacity.domain.snapshot.values import read_time
from capacity.domain.types import Backoff, Measurement, Model, Node, Profile, Replica, Settings, Snapshot
from quotas.domain.types import Quota, Scope

FORMAT: Final = "llmgw.snapshot/1"
NULLABLE: Final = frozenset({"replicas", "nodes", "measurements", "quotas", "scopes"})
Rows = list[tuple[str, dict[str, Any]]]
"""The good rows of a list, each with its path."""


@dataclass(slots=True)
class _Reading:
    """A document while it is read: rows without a fault of their own, and the names that references may use."""

    faults: Faults
    lists: dict[str, Rows | None] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)
    profiles: set[tuple[str, str]] = field(default_factory=set)
    scopes: set[str] | None = None


def parse_snapshot(document: object) -> Snapshot:
    """The snapshot that `document` (as `loads` or `json.loads` gives it) describes; raises `InvalidSnapshot` with all faults."""
    reading = _Reading(faults=Faults())
    top = _top(document, reading.faults)
    if top is None:
        raise InvalidSnapshot(tuple(reading.faults.found))
    at = read_time(top["at"], "at", reading.faults) if "at" in top else None
    settings = _settings(top.get("settings", {}), reading.faults)
    for kind in KEYS:
        reading.lists[kind] = _rows(kind, top.get(kind, []), reading.faults)
    _collect_names(top, reading)
    _check_rows(reading)
    if reading.faults.found or at is None or settings is None:
        raise InvalidSnapshot(tuple(reading.faults.found))
    return Snapshot(at=at, settings=settings, **_built(reading.lists))


def _top(document: object, faults: Faults) -> dict[str, Any] | None:
    """The document itself, its values not yet read; None where it is no object."""
    read_object(document, "", dict.fromkeys(("format", "at", "settings", *KEYS), _unread), ("format", "at"), faults)
    if not isinstance(document, dict):
        return None
    if document.get("format", FORMAT) != FORMAT:
        faults.add("format", f'{shown(document["format"])} is not "{FORMAT}"')
    return document


def _unread(value: object, path: str, faults: Faults) -> object:
    return value


def _settings(value: object, faults: Faults) -> Settings | None:
    found = read_object(value, "settings", SETTINGS, (), faults)
    if found is None:
        return None
    settings = Settings(**found)
    if settings.wake_seconds >= settings.idle_seconds:
        message = f"{settings.wake_seconds} is not below idle_seconds {settings.idle_seconds}: a woken model would go at once"
        faults.add("settings.wake_seconds", message)
    return settings


def _rows(kind: str, value: object, faults: Faults) -> Rows | None:
    if value is None and kind in NULLABLE:
        return None
    if not isinstance(value, list):
        faults.add(kind, f"{shown(value)} is not a list")
        return []
    rows: Rows = []
    for index, item in enumerate(value):
        path = f"{kind}[{index}]"
        row = read_object(item, path, KEYS[kind], REQUIRED[kind], faults)
        if row is not None:
            rows.append((path, row))
    _name_duplicates(kind, value, faults)
    return rows


def _name_duplicates(kind: str, rows: list[Any], faults: Faults) -> None:
    keys = IDENTITY[kind]
    first: dict[tuple[object, ...], int] = {}
    for index, row in enumerate(rows):
        names = tuple(row.get(key) for key in keys) if isinstance(row, dict) else ()
        if not names or not all(isinstance(name, str) for name in names):
            continue
        earlier = first.setdefault(names, index)
        if earlier != index:
            faults.add(f"{kind}[{index}].{keys[-1]}", f"the same row as {kind}[{earlier}]")


def _collect_names(top: Mapping[str, Any], reading: _Reading) -> None:
    """Names also of rows with other faults, so that one mistake is not reported again at every reference to it."""
    reading.models = set(_named(top.get("models"), "name"))
    reading.profiles = {
        (row["model"], row["name"])
        for row in _objects(top.get("profiles"))
        if isinstance(row.get("model"), str) and isinstance(row.get("name"), str)
    }
    if top.get("scopes", []) is not None:
        reading.scopes = set(_named(top.get("scopes"), "name"))


def _objects(rows: object) -> list[dict[str, Any]]:
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _named(rows: object, key: str) -> list[str]:
    return [row[key] for row in _objects(rows) if isinstance(row.get(key), str)]


def _check_rows(reading: _Reading) -> None:
    checks = {
        "models": _check_model,
        "profiles": _check_owner,
        "measurements": _check_profile,
        "replicas": _check_replica,
        "backoffs": _check_profile,
        "scopes": _check_scope,
        "quotas": _check_quota,
    }
    for kind, check in checks.items():
        for path, row in reading.lists[kind] or ():
            check(path, row, reading)


def _check_model(path: str, row: dict[str, Any], reading: _Reading) -> None:
    _check_scope_exists(f"{path}.scope", row.get("scope"), reading)
    fault = bounds_fault(row.get("min_replicas", 1), row.get("max_replicas"))
    if fault is not None:
        reading.faults.add(f"{path}.max_replicas", fault)


def bounds_fault(min_replicas: int, max_replicas: int | None) -> str | None:
    """What is wrong with a model's bounds, None where nothing is. A stored row that breaks this is marked
    `Model.bounds_conflict` by whoever builds the snapshot."""
    if max_replicas is not None and max_replicas < min_replicas:
        return f"{max_replicas} is below min_replicas {min_replicas}"
    return None


def _check_scope_exists(path: str, name: str | None, reading: _Reading) -> None:
    if name is not None and reading.scopes is not None and name not in reading.scopes:
        reading.faults.add(path, f"there is no scope {shown(name)}")


def _check_owner(path: str, row: dict[str, Any], reading: _Reading) -> bool:
    if row["model"] in reading.models:
        return True
    reading.faults.add(f"{path}.model", f"there is no model {shown(row['model'])}")
    return False


def _check_profile(path: str, row: dict[str, Any], reading: _Reading) -> None:
    if _check_owner(path, row, reading) and (row["model"], row["profile"]) not in reading.profiles:
        reading.faults.add(f"{path}.profile", f"the model {shown(row['model'])} has no profile {shown(row['profile'])}")


def _check_replica(path: str, row: dict[str, Any], reading: _Reading) -> None:
    _check_profile(path, row, reading)
    if row["state"] in ("starting", "unready") and row.get("since") is None:
        reading.faults.add(
            f"{path}.since", f"missing: a replica that is {row['state']} cannot be told from a stuck one without it"
        )
    drained_for = row.get("drained_for")
    if drained_for is not None and drained_for not in reading.models:
        reading.faults.add(f"{path}.drained_for", f"there is no model {shown(drained_for)}")


def _check_scope(path: str, row: dict[str, Any], reading: _Reading) -> None:
    parents: tuple[str, ...] = row.get("parents", ())
    for index, parent in enumerate(parents):
        if parent in parents[:index]:
            reading.faults.add(f"{path}.parents[{index}]", f"the parent {shown(parent)} stands twice")
    funding = row.get("funding_parent")
    if funding is not None and funding not in parents:
        reading.faults.add(f"{path}.funding_parent", f"{shown(funding)} is not among the parents")


def _check_quota(path: str, row: dict[str, Any], reading: _Reading) -> None:
    _check_scope_exists(f"{path}.scope", row["scope"], reading)
    quota = Quota(scope=row["scope"], target=row["target"])
    if quota.model is None:
        return
    if quota.model not in reading.models:
        reading.faults.add(f"{path}.target", f"there is no model {shown(quota.model)}")
    if row.get("guarantee") is not None:
        reading.faults.add(f"{path}.guarantee", "a row on a model takes a limit only")


def _built(lists: Mapping[str, Rows | None]) -> dict[str, Any]:
    makers = {
        "nodes": Node,
        "models": Model,
        "profiles": Profile,
        "measurements": Measurement,
        "replicas": Replica,
        "backoffs": Backoff,
        "scopes": Scope,
        "quotas": Quota,
    }
    built: dict[str, Any] = {}
    for kind, make in makers.items():
        rows = lists[kind]
        built[kind] = None if rows is None else tuple(make(**row) for _, row in rows)
    return built
