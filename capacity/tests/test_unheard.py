"""A host that reports for a pool that there is not: it is told, the log names it, a metric counts it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest
import redis

from capacity import tasks, unheard
from capacity.drivers.wire import HEARD_KEY, REPORTING_KEY
from capacity.node.reporter import UNHEARD_SECONDS, Reporter, said_already
from capacity.ports import NodeReport
from capacity.tests.factories import make_pool
from capacity.tests.pages import make_person

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def warned(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING")


def report(pool: str, after: int = 0) -> NodeReport:
    return NodeReport(
        node="n1", pool=pool, at=NOW + timedelta(seconds=after), generation=0, labels={}, resources={}, replicas=(),
    )  # fmt: skip


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_worker_of_a_pool_that_nobody_listens_for_says_so_once_and_when_it_is_heard(redis_client: redis.Redis, caplog):
    reporter = Reporter(redis_client)
    for after in range(0, 2 * UNHEARD_SECONDS, 5):
        assert reporter.report(report("nix", after))
    assert warnings(caplog) == ["No pass listens for pool nix: is its name right, and does the control plane run?"]
    unheard.listen(redis_client, ["nix"], 15, NOW)
    reporter.report(report("nix", 200))
    assert warnings(caplog)[1:] == ["A pass listens for pool nix now."]


def test_a_worker_that_is_heard_says_nothing(redis_client: redis.Redis, caplog):
    unheard.listen(redis_client, ["p"], 15, NOW)
    reporter = Reporter(redis_client)
    for after in range(0, 2 * UNHEARD_SECONDS, 5):
        reporter.report(report("p", after))
    assert warnings(caplog) == []


def test_pools_that_hosts_report_for_and_nobody_has_are_named_once_an_hour(redis_client: redis.Redis, caplog):
    for pool in ("p", "nix"):
        Reporter(redis_client).report(report(pool))
    unheard.listen(redis_client, ["p"], 15, NOW)
    unheard.listen(redis_client, ["p"], 15, NOW)
    assert unheard.unheard(redis_client, NOW) == ["nix"]
    assert warnings(caplog) == ["A host reports for pool 'nix', which there is not: its node worker has another --pool."]
    assert unheard.unheard(redis_client, NOW + timedelta(seconds=61)) == []


def test_another_installation_at_the_same_redis_listens_for_its_own(redis_client: redis.Redis):
    Reporter(redis_client).report(report("theirs"))
    redis_client.set(HEARD_KEY.format(pool="theirs"), "")
    unheard.listen(redis_client, ["ours"], 15, NOW)
    assert unheard.unheard(redis_client, NOW) == []


@pytest.mark.parametrize("at", [b"", b"\xff", b"soon", b"2026-12-01T12:00:00", b"9999-99-99"])
def test_rubbish_in_redis_names_nobody(redis_client: redis.Redis, at):
    redis_client.hset(REPORTING_KEY, b"\xff\x00", at)
    assert unheard.unheard(redis_client, NOW) == []


def test_redis_away_stops_no_passes(caplog):
    away = redis.Redis(port=1, socket_connect_timeout=0.2)
    unheard.listen(away, ["p"], 15, NOW)
    assert warnings(caplog) == ["Hosts cannot be told that they are heard: ConnectionError."]


@pytest.mark.django_db
def test_nodes_and_metrics_name_and_count_it(client, redis_client: redis.Redis, monkeypatch):
    make_pool("p")
    now = datetime.now(UTC)
    monkeypatch.setattr(unheard, "redis_client", lambda: redis_client)
    redis_client.hset(REPORTING_KEY, mapping={"p": now.isoformat(), "<nix>": now.isoformat()})
    client.force_login(make_person("olga", is_operator=True))
    page = client.get("/nodes/").content.decode()
    assert "A host reports for a pool <b>&lt;nix&gt;</b>, which there is not" in page
    assert page.count("A host reports for a pool") == 1
    redis_client.set(HEARD_KEY.format(pool="p"), "")
    assert "llmgw_unheard_pools 1.0" in client.get("/metrics").content.decode()


@pytest.mark.django_db
def test_metrics_say_nothing_of_it_where_redis_is_away(client, monkeypatch):
    monkeypatch.setattr(unheard, "redis_client", lambda: redis.Redis(port=1, socket_connect_timeout=0.2))
    assert "\nllmgw_unheard_pools " not in client.get("/metrics").content.decode()


@pytest.mark.django_db
def test_whoever_asks_for_passes_tells_the_hosts(redis_client: redis.Redis, monkeypatch):
    make_pool("p")
    sent: list[object] = []
    monkeypatch.setattr(tasks, "redis_client", lambda: redis_client)
    monkeypatch.setattr(tasks.reconcile_pool, "apply_async", lambda *given, **_: sent.append(given))
    tasks.reconcile_all()
    assert len(sent) == 1
    assert 50 <= redis_client.ttl(HEARD_KEY.format(pool="p")) <= 60


def test_a_worker_that_cannot_reach_redis_says_once_where_it_looked_and_how_to_say_where_it_is(caplog):
    away = Reporter(redis.Redis.from_url("redis://:canary@127.0.0.1:1/0"))
    assert [away.report(report("p", after)) for after in (0, 5)] == [False, False]
    (said,) = warnings(caplog)
    assert "at 127.0.0.1:1 (" in said and "REDIS_URL=" in said and "LLMGW_VAR=" in said and "canary" not in said
    again = logging.LogRecord("celery", logging.ERROR, "", 0, "consumer: Cannot connect to %s: %s.\n%s", (), None)
    other = logging.LogRecord("celery", logging.ERROR, "", 0, "consumer: Connection to broker lost", (), None)
    assert (said_already(again), said_already(other)) == (False, True)
