"""One look at a fleet: its processes first, then what stands on its hosts' disks and in its database."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import psutil

from capacity.node.processes import TOKEN_VARIABLE

from . import rows
from .fleet import Fleet
from .observation import Bound, Decided, Engine, Host, Observation, Row

POLICY_SECONDS = 35  # quotas are read anew each 30 s
PAUSE_SECONDS = 0.2
REPLICAS = """
SELECT r.name, m.name, r.nodes ->> 0, r.state, r.created_at, r.intent
FROM capacity_replica r JOIN capacity_languagemodel m ON m.id = r.model_id WHERE r.gone_at IS NULL"""
MODELS = """
SELECT m.name, m.min_replicas, m.max_replicas, m.mode, d.outcome, d.reason
FROM capacity_languagemodel m LEFT JOIN capacity_decision d ON d.id = m.last_decision_id"""
GENERATIONS = "SELECT generation FROM capacity_pass ORDER BY id DESC LIMIT 50"
UNITS = {kind.name: kind.units for kind in rows.MODELS}


def look(fleet: Fleet) -> Observation:
    """Raises sqlite3.OperationalError where the database cannot be read just now."""
    engines = known_engines(fleet)
    now = time.time()
    with closing(sqlite3.connect(fleet.database, timeout=20)) as connection:
        connection.execute("BEGIN")  # one moment for all that follows
        models = connection.execute(MODELS).fetchall()
        return Observation(
            at=now,
            engines=engines,
            rows=tuple(row(*values) for values in connection.execute(REPLICAS)),
            bounds=(*maxima(models), limit(connection)),
            hosts={name: Host(name=name, offers=rows.UNITS_OF_A_HOST, silent_seconds=None) for name in rows.HOSTS}
            | dict(host(name, at, now) for name, at in connection.execute("SELECT name, reported_at FROM capacity_node")),
            units=UNITS,
            decided={
                name: Decided(outcome=o or "none", reason=r or "", at_least=least, mode=mode)
                for name, least, _, mode, o, r in models
            },
            generations=tuple(generation for (generation,) in reversed(connection.execute(GENERATIONS).fetchall())),
            passes=connection.execute("SELECT count(*) FROM capacity_pass").fetchone()[0],
        )


def row(name: str, model: str, host: str, state: str, created_at: str, intent: str) -> Row:
    return Row(name=name, model=model, host=host, state=state, created_at=instant(created_at), intent=intent)


def maxima(models: list[tuple[Any, ...]]) -> list[Bound]:
    return [
        Bound(name=f"max_replicas of {name}", models=frozenset({name}), counts="replicas", most=most, late_seconds=2)
        for name, _, most, *_ in models
    ]


def limit(connection: sqlite3.Connection) -> Bound:
    ((most,),) = connection.execute('SELECT "limit" FROM quotas_capacityquota').fetchall()
    members = frozenset(kind.name for kind in rows.MODELS if kind.in_scope)
    return Bound(name=f"limit of {rows.SCOPE}", models=members, counts="units", most=most, late_seconds=POLICY_SECONDS)


def host(name: str, reported_at: str | None, now: float) -> tuple[str, Host]:
    silent = None if reported_at is None else now - instant(reported_at)
    return name, Host(name=name, offers=rows.UNITS_OF_A_HOST, silent_seconds=silent)


def instant(text: str) -> float:
    """SQLite's text of a UTC time → seconds since the epoch."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def known_engines(fleet: Fleet) -> tuple[Engine, ...]:
    """Each with the replica of its host's records. One without is looked for again: it may have ended just now."""
    processes = living(fleet)
    names = tokens(fleet)
    for _ in range(5):
        if all(token in names for _, token, _ in processes.values()):
            break
        time.sleep(PAUSE_SECONDS)
        alive = living(fleet)
        processes = {pid: found for pid, found in processes.items() if alive.get(pid) == found}
        names |= tokens(fleet)
    return tuple(
        Engine(pid=pid, host=where, model=model, replica=names.get(token)) for pid, (where, token, model) in processes.items()
    )


def living(fleet: Fleet) -> dict[int, tuple[str, str, str]]:
    """Pid → host, token of its start, model."""
    found = {}
    for process in fleet.engine_processes():
        command = process.info["cmdline"]
        where = fleet.host_of(command)
        try:
            token = process.environ().get(TOKEN_VARIABLE, "")
        except (psutil.Error, OSError):
            continue  # it has ended
        if where and token:
            found[process.pid] = (where, token, command[command.index("--model") + 1])
    return found


def tokens(fleet: Fleet) -> Mapping[str, str]:
    """Token → replica, as the hosts' disks have it."""
    found = {}
    for path in (fleet.folder / "node").glob("*/replicas/*.json"):
        try:
            record = json.loads(path.read_text())
        except (OSError, ValueError):
            continue  # it is deleted just now
        found[record["token"]] = record["name"]
    return found
