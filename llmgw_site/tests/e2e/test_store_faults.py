"""Redis restarted, the database locked, the quotas unreadable: the engines run on, and the passes come back by themselves."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from .site import LiveSite, until


def said(log: str, event: str, **values: Any) -> list[dict[str, Any]]:
    """The lines of that event with these values."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("event") == event and values.items() <= line.items()]


@contextmanager
def locked(site: LiveSite) -> Iterator[None]:
    """Nobody else writes the database."""
    with closing(sqlite3.connect(site.database, timeout=20, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


@contextmanager
def hidden(site: LiveSite, table: str) -> Iterator[None]:
    """The table has another name: no query finds it."""
    site.ask(f"ALTER TABLE {table} RENAME TO {table}_hidden")
    try:
        yield
    finally:
        site.ask(f"ALTER TABLE {table}_hidden RENAME TO {table}")


def test_engines_outlive_a_restart_of_redis_and_passes_go_on(site: LiveSite) -> None:
    site.bounds("chat", 2, 4)
    names = site.wait_for(2)
    engines = site.engines()
    site.kill("redis", signal.SIGTERM)
    assert site.engines() == engines
    site.start("redis")
    site.more_passes(3)
    assert site.wait_for(2) == names
    assert site.engines() == engines
    assert {"worker", "beat", "node", "web"} <= site.running()
    # not only looked at: what is asked for now is done
    site.bounds("chat", 3, 4)
    assert set(names) < set(site.wait_for(3))


def test_a_locked_database_fails_passes_with_a_line_each_and_they_come_back(site: LiveSite) -> None:
    (name,) = site.wait_for(1)
    engines = site.engines()
    before = site.log("worker")

    def new() -> str:
        return site.log("worker")[len(before) :]

    with locked(site):
        count = site.passes()
        until(lambda: len(said(new(), "pass", outcome="failed")) >= 2, new)
        assert site.passes() == count
        assert site.endpoints()["chat"] == {name}, "what may be read is still told"
    site.more_passes(2)
    failed = said(new(), "pass", outcome="failed")
    assert {line["error"] for line in failed} == {"OperationalError: database is locked"}
    assert "Traceback" not in new()
    assert '"exception"' not in new()
    assert site.engines() == engines
    assert site.wait_for(1) == [name]
    assert site.endpoints()["chat"] == {name}


def test_a_new_worker_that_cannot_read_the_quotas_goes_by_the_last_good_answer(site: LiveSite) -> None:
    with hidden(site, "quotas_capacityquota"):
        site.kill("worker")
        site.start("worker")

        def view() -> dict[str, Any]:
            found = site.ask("SELECT views FROM capacity_pass ORDER BY id DESC LIMIT 1")
            quotas: dict[str, Any] = json.loads(found[0][0])["quotas"]
            return quotas

        until(lambda: "OperationalError" in str(view().get("error")), lambda: str(view()))
        read_at = view()["read_at"]
        assert read_at, "what the killed worker had read"
        site.bounds("chat", 2, 4)
        site.wait_for(2)
        assert view()["read_at"] == read_at
    until(lambda: not view()["error"], lambda: str(view()))
