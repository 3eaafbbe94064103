"""Health and metrics for machines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from capacity.models import Lease
from capacity.store import beat_key
from capacity.tests.factories import make_node
from capacity.tests.fleet import Fleet
from capacity.tests.pages import make_person
from quotas.services import token_create

pytestmark = pytest.mark.django_db


@pytest.fixture
def redis_here(settings, redis_server, redis_client):
    settings.REDIS_URL = redis_server
    return redis_client


def test_ready_needs_every_store_a_heartbeat_and_a_pass(client, redis_here):
    Fleet()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["database"] == answer.json()["checks"]["redis"] == "ok"
    now = datetime.now(UTC)
    redis_here.set(beat_key(), now.isoformat())
    Lease.objects.update(last_pass_at=now)
    assert client.get("/readyz").json() == {
        "ready": True,
        "checks": {"database": "ok", "redis": "ok", "beat": "ok", "last_pass": "ok"},
    }
    Lease.objects.update(last_pass_at=now - timedelta(seconds=61))
    assert client.get("/readyz").json()["checks"]["last_pass"] == "1 of 1 pools had no pass for 60 s"
    redis_here.set(beat_key(), (now - timedelta(seconds=90)).isoformat())
    assert "heartbeat" in client.get("/readyz").json()["checks"]["beat"]


def test_redis_away_is_said_without_its_address(client):
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["redis"] == "does not answer (ConnectionError)"
    assert answer.json()["checks"]["beat"] == "unknown: its store does not answer"  # a hanging store is waited for once


def test_metrics_are_for_loopback_without_a_proxy_or_a_token_of_somebody_who_sees_everything(client):
    assert client.get("/metrics").status_code == 200
    assert client.get("/metrics", headers={"X-Forwarded-For": "203.0.113.9"}).status_code == 401
    assert client.get("/metrics", REMOTE_ADDR="203.0.113.9").status_code == 401
    for person, status in ((make_person("op", is_operator=True), 200), (make_person("viewer"), 401)):
        header = {"Authorization": f"Bearer {token_create(person, days=1)}"}
        assert client.get("/metrics", REMOTE_ADDR="203.0.113.9", headers=header).status_code == status
    assert client.get("/metrics", REMOTE_ADDR="203.0.113.9", headers={"Authorization": "Bearer nonsense"}).status_code == 401


def metrics(client) -> dict[str, float]:
    lines = client.get("/metrics").content.decode().splitlines()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


def test_metrics_have_what_the_last_pass_saw(client, time_machine):
    fleet = Fleet(min_replicas=1)
    fleet.a_pass()
    fleet.passes(1)
    fleet.share(21)
    fleet.passes(1)
    time_machine.move_to(fleet.fake.now(), tick=False)
    found = metrics(client)
    chat = '{model="chat",pool="p"}'
    assert found[f"llmgw_model_demand_low{chat}"] == 21
    assert found[f"llmgw_model_load_ratio{chat}"] == 2.1
    assert found[f"llmgw_desired_replicas{chat}"] == 3
    assert found['llmgw_decision{model="chat",outcome="add",pool="p",reason="over_capacity"}'] == 1
    assert found['llmgw_pool_units{kind="offered",pool="p",resource="sim"}'] == 8
    assert found['llmgw_pool_units{kind="held",pool="p",resource="sim"}'] == 3
    assert found['llmgw_view_failing{pool="p",view="quotas"}'] == 0


def test_metrics_count_what_is_wanted_and_not_there_and_say_how_often_passes_come(client, time_machine):
    fleet = Fleet(units=2, min_replicas=3, max_replicas=4)
    fleet.passes(2)
    time_machine.move_to(fleet.fake.now(), tick=False)
    found = metrics(client)
    assert found['llmgw_desired_replicas{model="chat",pool="p"}'] == 3
    assert found['llmgw_model_missing_replicas{model="chat",pool="p"}'] == 1
    assert found["llmgw_pass_interval_seconds"] == 15


def test_metrics_say_what_the_brake_withholds_by_rule_and_that_it_is_on(client, time_machine):
    from capacity.models import Brake

    fleet = Fleet(units=40, min_replicas=12)
    fleet.a_pass()
    time_machine.move_to(fleet.fake.now(), tick=False)
    found = metrics(client)
    assert found['llmgw_brake_on{pool="p"}'] == 0
    assert found['llmgw_brake_withheld{pool="p",rule="starts"}'] == 2
    assert found['llmgw_brake_withheld{pool="p",rule="stops"}'] == 0
    Brake.objects.update(is_on=True)
    assert metrics(client)['llmgw_brake_on{pool="p"}'] == 1
    Brake.objects.update(until=fleet.fake.now())
    assert metrics(client)['llmgw_brake_on{pool="p"}'] == 0


@pytest.mark.parametrize(
    ("seconds_ago", "state"),
    [(None, "typed_in"), (0, "reporting"), (29, "reporting"), (30, "silent"), (299, "silent"), (300, "lost"), (-31, "silent")],
)
def test_nodes_are_counted_as_passes_judge_them(client, time_machine, seconds_ago, state):
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    time_machine.move_to(now, tick=False)
    make_node("n", reported_at=None if seconds_ago is None else now - timedelta(seconds=seconds_ago))
    found = {name: count for name, count in metrics(client).items() if name.startswith("llmgw_nodes")}
    assert len(found) == 4
    assert [name for name, count in found.items() if count] == [next(name for name in found if f'state="{state}"' in name)]


def test_desired_replicas_are_absent_and_never_0_without_a_pass_and_after_three_missed_ones(client, time_machine):
    fleet = Fleet(min_replicas=1)
    time_machine.move_to(fleet.fake.now(), tick=False)
    assert not any(name.startswith("llmgw_desired_replicas") for name in metrics(client))
    fleet.a_pass()
    assert any(name.startswith("llmgw_desired_replicas") for name in metrics(client))
    time_machine.move_to(fleet.fake.now() + timedelta(seconds=46), tick=False)
    assert not any(name.startswith("llmgw_desired_replicas") for name in metrics(client))


def test_a_scrape_asks_the_same_number_of_queries_for_many_models(client, django_assert_max_num_queries):
    from capacity.tests.factories import make_model

    fleet = Fleet()
    for _ in range(20):
        make_model(pool=fleet.pool)
    fleet.a_pass()
    with django_assert_max_num_queries(12):
        client.get("/metrics")
