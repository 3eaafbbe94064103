"""The newest readings in Redis: replaced, aged out, and unknown where Redis is away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from capacity.ports import Histogram, Latencies, Sample
from capacity.sources.engines import Skipped
from capacity.sources.gateway import ModelPush, Push
from capacity.sources.push_store import MAX_SOURCES, Pushed, PushStore
from capacity.sources.store import Failure, LoadStore

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def sample(in_flight: int | None = 3, at: datetime = NOW) -> Sample:
    return Sample(in_flight=in_flight, sampled_at=at, output_tokens_total=77)


@pytest.fixture
def away() -> redis.Redis:
    return redis.Redis(host="127.0.0.1", port=9, retry=Retry(NoBackoff(), 0))


@pytest.mark.parametrize("decode", [False, True])
def test_what_is_written_is_read(redis_server, redis_client, decode):
    client = redis.Redis.from_url(redis_server, decode_responses=decode)
    readings = {"a": sample(), "b": Sample(in_flight=None, sampled_at=NOW), 'c"🐙': sample(0)}
    assert LoadStore(client).write("p", readings, NOW)
    assert LoadStore(client).loads("p") == readings
    assert LoadStore(client).loads("other") == {}
    client.close()


QUICK = Histogram(bounds=(0.1, 0.5), counts=(2, 7), count=9)


def with_latencies(at: datetime = NOW, **histograms: Histogram) -> Sample:
    return Sample(in_flight=1, sampled_at=at, latencies=histograms)


def test_latencies_lie_beside_the_samples_with_their_own_time(redis_client):
    store = LoadStore(redis_client)
    store.write("p", {"a": with_latencies(ago(5), ttft=QUICK, e2e=QUICK), "b": with_latencies(tpot=QUICK), "c": sample()}, NOW)
    assert store.loads("p")["a"] == Sample(in_flight=1, sampled_at=ago(5))
    assert store.latencies("p", ["a", "c", "x"]) == {"a": Latencies(at=ago(5), histograms={"ttft": QUICK, "e2e": QUICK})}
    assert store.latencies("p", ()) == {}
    assert 0 < redis_client.ttl("llmgw:latencies:p") <= 3600


def test_a_failed_reading_keeps_the_last_latencies_and_an_engine_without_them_drops_them(redis_client):
    store = LoadStore(redis_client)
    store.write("p", {"a": with_latencies(ttft=QUICK), "b": with_latencies(ttft=QUICK)}, ago(5))
    store.write("p", {"a": Skipped("No."), "b": sample()}, NOW)
    assert set(store.latencies("p", ["a", "b"])) == {"a"}
    store.write("p", {}, NOW + timedelta(hours=1))
    assert redis_client.hkeys("llmgw:latencies:p") == []


@pytest.mark.parametrize(
    "histogram",
    ["3", "null", "[]", "[[1],[1]]", "[[1],[1,2],3]", '[["1"],[1],1]', "[[1],[-1],1]", "[[1],[1.5],2]", "[[2,1],[1,1],1]",
     "[[1,2],[3,2],3]", "[[1],[3],2]", "[[1],[1],true]", "[[NaN,NaN],[1,1],1]"],
)  # fmt: skip
def test_a_broken_histogram_in_redis_is_left_out_and_hurts_no_other(redis_client, histogram):
    row = f'{{"at":"2026-11-30T12:00:00+00:00","histograms":{{"ttft":[[0.1,0.5],[2,7],9],"e2e":{histogram},"x":1}}}}'
    redis_client.hset("llmgw:latencies:p", mapping={"a": row, "b": "no json", "c": "{}", "d": '{"at":3}'})
    assert LoadStore(redis_client).latencies("p", "abcd") == {"a": Latencies(at=NOW, histograms={"ttft": QUICK})}


def test_shards_write_beside_each_other_and_a_newer_sample_replaces(redis_client):
    store = LoadStore(redis_client)
    store.write("p", {"a": sample(1), "b": sample(2)}, NOW)
    store.write("p", {"b": sample(5)}, NOW)
    assert store.loads("p") == {"a": sample(1), "b": sample(5)}


def test_a_failed_reading_leaves_the_last_sample_to_age_and_says_why(redis_client):
    store = LoadStore(redis_client)
    store.write("p", {"a": sample(1, ago(15))}, ago(15))
    store.write("p", {"a": Skipped("Answered HTML instead of metrics.")}, NOW)
    assert store.loads("p") == {"a": sample(1, ago(15))}
    assert store.failures("p") == {"a": Failure(reason="Answered HTML instead of metrics.", at=NOW)}


def test_a_good_reading_ends_a_failure(redis_client):
    store = LoadStore(redis_client)
    store.write("p", {"a": Skipped("Answered with status 500."), "b": Skipped("No.")}, NOW)
    store.write("p", {"a": sample()}, NOW)
    assert set(store.failures("p")) == {"b"}


def test_entries_older_than_an_hour_are_dropped_by_the_next_write(redis_client):
    store = LoadStore(redis_client)
    store.write("p", {"gone": sample(1, ago(3600)), "kept": sample(1, ago(3599))}, ago(3599))
    store.write("p", {"lost": Skipped("No.")}, ago(3601))
    store.write("p", {}, NOW)
    assert set(store.loads("p")) == {"kept"}
    assert store.failures("p") == {}


def test_a_pool_that_nobody_writes_is_forgotten_by_redis_itself(redis_client):
    LoadStore(redis_client).write("p", {"a": sample()}, NOW)
    assert 0 < redis_client.ttl("llmgw:loads:p") <= 3600


@pytest.mark.parametrize(
    "row",
    [
        "",
        "no json",
        "[]",
        "null",
        "{}",
        '{"sampled_at": 3}',
        '{"sampled_at": "2026-11-30T12:00:00"}',
        '{"sampled_at": "x"}',
        '{"sampled_at": "0001-01-01T00:00:00+10:00", "at": "9999-12-31T23:59:59-10:00"}',
    ],
)
def test_a_broken_row_is_left_out_and_hurts_no_other(redis_client, row):
    store = LoadStore(redis_client)
    store.write("p", {"good": sample()}, NOW)
    redis_client.hset("llmgw:loads:p", "broken", row)
    redis_client.hset("llmgw:load-failures:p", "broken", row)
    assert store.loads("p") == {"good": sample()}
    assert store.failures("p") == {}
    assert store.write("p", {}, NOW)
    assert redis_client.hkeys("llmgw:loads:p") == [b"good"]


@pytest.mark.parametrize("value", ["-1", "2.5", "true", '"3"', "null", "1000000000001"])
def test_a_count_in_redis_that_is_none_is_unknown(redis_client, value):
    redis_client.hset("llmgw:loads:p", "a", f'{{"in_flight": {value}, "sampled_at": "2026-11-30T12:00:00+00:00"}}')
    assert LoadStore(redis_client).loads("p") == {"a": Sample(in_flight=None, sampled_at=NOW)}


def test_without_redis_all_is_unknown_and_nothing_raises(away):
    store, pushes = LoadStore(away), PushStore(away)
    assert (store.write("p", {"a": sample()}, NOW), store.loads("p"), store.failures("p")) == (False, None, None)
    assert store.latencies("p", ["a"]) is None
    assert (pushes.push("p", Push(source="g", at=NOW)), pushes.read("p")) == (False, None)


def push(source: str = "g", at: datetime = NOW, **models: ModelPush) -> Push:
    return Push(source=source, at=at, replicas={"r": 3}, models=models)


def test_a_push_replaces_its_source_s_last_one_and_no_other(redis_client):
    store = PushStore(redis_client)
    store.push("p", push("g", ago(2), chat=ModelPush(held=1, last_arrival_at=ago(5))))
    store.push("p", push("h", NOW, chat=ModelPush(last_arrival_at=None)))
    newest = push("g", NOW, chat=ModelPush(held=0, last_arrival_at=ago(1)))
    store.push("p", newest)
    pushed = store.read("p")
    assert pushed is not None
    assert sorted(pushed.pushes, key=lambda one: one.source) == [newest, push("h", NOW, chat=ModelPush())]
    assert store.read("other") == Pushed(pushes=(), arrivals={})


def test_the_last_arrival_only_moves_on_and_outlives_its_source(redis_client):
    store = PushStore(redis_client)
    store.push("p", push("g", ago(7200), chat=ModelPush(last_arrival_at=ago(7200))))
    store.push("p", push("h", NOW, chat=ModelPush(last_arrival_at=ago(9000)), code=ModelPush(last_arrival_at=NOW)))
    pushed = store.read("p")
    assert pushed is not None
    assert [one.source for one in pushed.pushes] == ["h"]
    assert pushed.arrivals == {"chat": ago(7200), "code": NOW}


def test_sources_unheard_for_an_hour_and_those_beyond_the_bound_go(redis_client):
    store = PushStore(redis_client)
    for number in range(MAX_SOURCES + 20):
        store.push("p", Push(source=f"g{number}", at=ago(MAX_SOURCES + 20 - number)))
    pushed = store.read("p")
    assert pushed is not None
    assert len(pushed.pushes) == MAX_SOURCES
    assert "g19" not in {one.source for one in pushed.pushes}
    store.push("p", Push(source="late", at=NOW + timedelta(hours=2)))
    assert redis_client.hkeys("llmgw:pushes:p") == [b"late"]
    assert redis_client.zrange("llmgw:push-sources:p", 0, -1) == [b"late"]


@pytest.mark.parametrize(
    "row",
    [
        "", "[]", "null", '{"at": 3}', '{"at": "2026-11-30T12:00:00Z", "replicas": {}, "models": {"m": 3}}',
        '{"at": "2026-11-30T12:00:00Z", "replicas": [1], "models": {}}',
        '{"at": "2026-11-30T12:00:00Z", "replicas": {"r": "3"}, "models": {}}',
        '{"at": "2026-11-30T12:00:00Z", "replicas": {"r": 1000000000001}, "models": {}}',
        '{"at": "2026-11-30T12:00:00Z", "replicas": {}, "models": {"m": {"held": -5, "last_arrival_at": null}}}',
        '{"at": "9999-12-31T23:59:59-10:00", "replicas": {}, "models": {}}',
    ],
)  # fmt: skip
def test_a_broken_push_is_left_out_and_hurts_no_other(redis_client, row):
    store = PushStore(redis_client)
    store.push("p", push("good"))
    redis_client.hset("llmgw:pushes:p", "broken", row)
    pushed = store.read("p")
    assert pushed is not None
    assert pushed.pushes == (push("good"),)


@pytest.mark.parametrize("score", [1e300, float("inf"), -1e15])
def test_an_arrival_at_no_time_is_left_out_and_hurts_no_other(redis_client, score):
    redis_client.zadd("llmgw:arrivals:p", {"broken": score, "good": NOW.timestamp()})
    pushed = PushStore(redis_client).read("p")
    assert pushed is not None
    assert pushed.arrivals == {"good": NOW}
