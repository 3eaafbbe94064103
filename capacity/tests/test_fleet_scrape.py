"""Which engines are read, and that what they say reaches the store."""

from __future__ import annotations

import threading

import pytest
import redis

from capacity import fleet_scrape
from capacity.drivers.fake import FakeFleet
from capacity.models import Replica
from capacity.ports import Sample
from capacity.sources.store import LoadStore
from capacity.tests.factories import make_model, make_pool, make_profile
from capacity.tests.fleet import START, Fleet

pytestmark = pytest.mark.django_db


def shard_of(name, source="engines"):
    return fleet_scrape.Shard(source=source, number=0, endpoints=[("p", name, "http://127.0.0.1:1")])


def test_a_replica_is_read_as_soon_as_its_host_says_that_it_serves():
    fleet = Fleet(min_replicas=1)
    fleet.a_pass()
    assert list(fleet_scrape.shards(fleet.fake)) == []
    fleet.fake.advance(10)
    (shard,) = fleet_scrape.shards(fleet.fake)
    assert ([(pool, name) for pool, name, _ in shard.endpoints], shard.source) == ([("p", fleet.names("ready")[0])], "engines")


def test_a_row_that_no_host_reports_is_read_too():
    fleet = Fleet(min_replicas=0)
    fields = {"pool": fleet.pool, "model": fleet.model, "profile": fleet.profile, "state": "ready"}
    Replica.objects.create(name="typed", url="http://127.0.0.1:1", **fields)
    fleet.fake.away = True
    assert list(fleet_scrape.shards(fleet.fake)) == [shard_of("typed")]


def test_many_endpoints_come_in_shards(monkeypatch):
    fleet = Fleet(min_replicas=0)
    monkeypatch.setattr(fleet_scrape, "SHARD", 2)
    fields = {"pool": fleet.pool, "model": fleet.model, "profile": fleet.profile, "state": "ready"}
    for number in range(5):
        Replica.objects.create(name=f"r{number}", url=f"http://127.0.0.1:{number + 1}", **fields)
    assert [(shard.number, len(shard.endpoints)) for shard in fleet_scrape.shards(fleet.fake)] == [(0, 2), (1, 2), (2, 1)]


def test_pools_are_read_together_each_into_its_own_store(redis_client, monkeypatch):
    async def reading(targets, **_):
        return {target.replica: Sample(in_flight=len(target.replica), sampled_at=START) for target in targets}

    monkeypatch.setattr(fleet_scrape, "redis_client", lambda: redis_client)
    monkeypatch.setattr(fleet_scrape, "scrape", reading)
    for pool, name in (("p", "r1"), ("q", "r22")):
        model = make_model(pool=make_pool(pool))
        fields = {"pool": model.pool, "model": model, "profile": make_profile(model), "state": "ready"}
        Replica.objects.create(name=name, url="http://127.0.0.1:1", **fields)
    (shard,) = fleet_scrape.shards(FakeFleet())
    fleet_scrape.scrape_into_store(shard, START)
    loads = {pool: LoadStore(redis_client).loads(pool) for pool in ("p", "q")}
    assert {pool: {name: found.in_flight for name, found in rows.items()} for pool, rows in loads.items()} == {
        "p": {"r1": 2},
        "q": {"r22": 3},
    }


def test_a_shard_is_not_read_again_while_the_former_reading_runs(redis_client, monkeypatch):
    read = []

    async def reading(targets, **_):
        read.append([target.replica for target in targets])
        if len(read) == 1:
            begun_meanwhile()
        return {}

    def begun_meanwhile():
        other = threading.Thread(target=fleet_scrape.scrape_into_store, args=(shard_of("r1"), START))
        other.start()
        other.join()

    monkeypatch.setattr(fleet_scrape, "redis_client", lambda: redis_client)
    monkeypatch.setattr(fleet_scrape, "scrape", reading)
    for _ in range(2):
        fleet_scrape.scrape_into_store(shard_of("r1"), START)
    assert read == [["r1"], ["r1"]], "the one in between is left out, the one after it is not"


def test_nothing_is_read_while_there_is_nowhere_to_write_to(monkeypatch):
    monkeypatch.setattr(fleet_scrape, "redis_client", lambda: redis.Redis(port=1, socket_connect_timeout=0.2))
    monkeypatch.setattr(fleet_scrape, "scrape", None)
    fleet_scrape.scrape_into_store(shard_of("r1"), START)


def test_a_pool_s_setting_says_where_its_loads_are_read():
    fleet = Fleet(min_replicas=1, settings={"load_source": "prometheus"})
    fleet.a_pass()
    fleet.fake.advance(10)
    assert [shard.source for shard in fleet_scrape.shards(fleet.fake)] == ["prometheus"]


def test_a_pool_that_reads_prometheus_says_where_the_server_is_not_named(redis_client, monkeypatch, settings):
    settings.PROMETHEUS_URL = ""
    monkeypatch.setattr(fleet_scrape, "redis_client", lambda: redis_client)
    monkeypatch.setattr(fleet_scrape, "scrape", None)  # the engine itself is not asked
    fleet_scrape.scrape_into_store(shard_of("r1", source="prometheus"), START)
    assert {name: failure.reason for name, failure in LoadStore(redis_client).failures("p").items()} == {
        "r1": fleet_scrape.NO_SERVER
    }
