"""The keys of every kind of row: how each is read, and which must be there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capacity.domain.reasons import REASONS
from capacity.domain.snapshot.faults import Faults, below, shown
from capacity.domain.snapshot.text import RepeatedKeys
from capacity.domain.snapshot.values import (
    LARGEST,
    Reader,
    count_from,
    mapping_of,
    name_repeated,
    one_of,
    or_null,
    read_class,
    read_decimal,
    read_flag,
    read_fraction,
    read_name,
    read_names,
    read_peak,
    read_sample,
    read_target,
    read_text,
    read_time,
)
from capacity.domain.types import EVIDENCE_STATUSES, MODES, PROFILE_STATES, REPLICA_STATES, STALE_USES

Keys = Mapping[str, Reader]

_amount: Final = count_from(0)
_units: Final = count_from(1)
_priority: Final = count_from(-LARGEST)
_time: Final = or_null(read_time)

SETTINGS: Final[Keys] = {
    "scale_down_fraction": read_fraction,
    "down_window_seconds": _amount,
    "stale_after_seconds": _amount,
    "start_timeout_seconds": _amount,
    "unready_grace_seconds": _amount,
    "drain_timeout_seconds": _amount,
    "idle_seconds": _amount,
    "wake_seconds": _amount,
    # With 0 nothing that is at zero could ever be woken.
    "max_step_up": _units,
    "reclaim": read_flag,
    "reclaim_wait_seconds": _amount,
    "min_run_seconds": _amount,
    "shrink_grace_seconds": _amount,
    "stale_measurements": one_of(STALE_USES),
}
NODES: Final[Keys] = {
    "name": read_name,
    "resources": mapping_of(read_class, _amount),
    "labels": mapping_of(read_text, read_text),
    "schedulable": read_flag,
    "ready": read_flag,
}
MODELS: Final[Keys] = {
    "name": read_name,
    "scope": or_null(read_name),
    "mode": one_of(MODES),
    "priority": _priority,
    "min_replicas": _amount,
    "max_replicas": or_null(_amount),
    "scale_to_zero": read_flag,
    "held_requests": read_sample,
    "last_arrival_at": _time,
    "woken_at": _time,
    "last_change_at": _time,
    "demand_peak": read_peak,
    "demand_seconds": or_null(_amount),
    "short_since": _time,
    "down_window_seconds": or_null(_amount),
    "drain_timeout_seconds": or_null(_amount),
    "scale_down_fraction": or_null(read_fraction),
}
PROFILES: Final[Keys] = {
    "model": read_name,
    "name": read_name,
    "resource": read_class,
    "units": _units,
    "hosts": _units,
    "priority": _priority,
    "state": one_of(PROFILE_STATES),
    "selector": mapping_of(read_text, read_text),
    "start_timeout_seconds": or_null(_amount),
    "measure": read_flag,
}
MEASUREMENTS: Final[Keys] = {
    "model": read_name,
    "profile": read_name,
    "max_concurrency": _amount,
    "tokens_per_second": read_decimal,
    "status": one_of(EVIDENCE_STATUSES),
}
REPLICAS: Final[Keys] = {
    "name": read_name,
    "model": read_name,
    "profile": read_name,
    "nodes": read_names,
    "state": one_of(REPLICA_STATES),
    "since": _time,
    "in_flight": read_sample,
    "sampled_at": _time,
    "removable": read_flag,
    "under_test": read_flag,
    "give_back": read_flag,
    "outdated": read_flag,
    "drained_for": or_null(read_name),
    "drain_reason": or_null(one_of(tuple(REASONS))),
}
BACKOFFS: Final[Keys] = {"model": read_name, "profile": read_name, "node": read_name, "until": read_time}
SCOPES: Final[Keys] = {"name": read_name, "parents": read_names, "funding_parent": or_null(read_name)}
QUOTAS: Final[Keys] = {
    "scope": read_name,
    "target": read_target,
    "guarantee": or_null(_amount),
    "limit": or_null(_amount),
    "weight": _amount,
    "lend": read_flag,
    "lowered_at": _time,
}

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "nodes": ("name", "resources"),
    "models": ("name",),
    "profiles": ("model", "name", "resource", "units"),
    "measurements": ("model", "profile", "max_concurrency", "tokens_per_second"),
    "replicas": ("name", "model", "profile", "nodes", "state"),
    "backoffs": ("model", "profile", "node", "until"),
    "scopes": ("name",),
    "quotas": ("scope", "target"),
}
IDENTITY: Final[Mapping[str, tuple[str, ...]]] = {
    "nodes": ("name",),
    "models": ("name",),
    "profiles": ("model", "name"),
    "measurements": ("model", "profile"),
    "replicas": ("name",),
    "backoffs": ("model", "profile", "node"),
    "scopes": ("name",),
    "quotas": ("scope", "target"),
}
KEYS: Final[Mapping[str, Keys]] = {
    "nodes": NODES,
    "models": MODELS,
    "profiles": PROFILES,
    "measurements": MEASUREMENTS,
    "replicas": REPLICAS,
    "backoffs": BACKOFFS,
    "scopes": SCOPES,
    "quotas": QUOTAS,
}


def read_object(value: object, path: str, keys: Keys, required: tuple[str, ...], faults: Faults) -> dict[str, Any] | None:
    """The keys that are there, each read; None after any fault in this object."""
    if not isinstance(value, dict):
        faults.add(path or "$", f"{shown(value)} is not an object")
        return None
    before = len(faults.found)
    if isinstance(value, RepeatedKeys):
        name_repeated(value, path, faults)
    found: dict[str, Any] = {}
    for key, item in value.items():
        read = keys.get(key)
        if read is None:
            faults.add(below(path, key), "unknown key")
        else:
            found[key] = read(item, f"{path}.{key}" if path else key, faults)
    for key in required:
        if key not in value:
            faults.add(below(path, key), "missing")
    return found if len(faults.found) == before else None
