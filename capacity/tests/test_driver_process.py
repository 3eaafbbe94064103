"""The control side: what crosses Redis is believed whole or not at all, and a broker that is away is an outcome."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st
from redis.backoff import NoBackoff
from redis.retry import Retry

from capacity.drivers.fake import FakeFleet
from capacity.drivers.process import ProcessDriver
from capacity.drivers.wire import REPORTS_KEY, order_from_json, order_to_json, report_from_json, report_to_json
from capacity.node import serving
from capacity.ports import NodeReport, Order, Outcome, ReplicaReport

from .node_harness import an_order

AT = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=50)


def a_report(node: str = "n1", pool: str = "p") -> NodeReport:
    replica = ReplicaReport(
        name="a",
        model="m",
        profile="x",
        nodes=(node,),
        resource="sim",
        units=1,
        state="exited",
        since=AT,
        exit_code=-9,
        message="bye",
    )
    return NodeReport(
        node=node,
        pool=pool,
        at=AT,
        resources={"sim": 4},
        foreign={"gpu/l4": 1},
        replicas=(replica,),
        generation=3,
        foreign_devices={"GPU-1": "gpu/l4"},
        templates={"vllm": {"weights": True, "tensor_parallel": False}, "bare": {}},
    )


def a_driver(client: redis.Redis) -> ProcessDriver:
    return ProcessDriver(redis=client, send=lambda *_: None)


def write(client: redis.Redis, node: str, row: Any) -> None:
    client.hset(REPORTS_KEY.format(pool="p"), node, row if isinstance(row, str | bytes) else json.dumps(row))


def test_reports_are_read_back_as_written_however_old(redis_client: redis.Redis) -> None:
    write(redis_client, "n2", report_to_json(a_report("n2")))
    write(redis_client, "n1", report_to_json(a_report("n1")))
    assert a_driver(redis_client).observe("p") == [a_report("n1"), a_report("n2")]
    assert redis_client.ttl(REPORTS_KEY.format(pool="p")) == -1


def test_a_report_of_an_older_worker_names_no_foreign_devices_and_no_templates(redis_client: redis.Redis) -> None:
    row = report_to_json(a_report())
    del row["foreign_devices"], row["templates"]
    write(redis_client, "n1", row)
    (report,) = a_driver(redis_client).observe("p") or ()
    assert (report.foreign_devices, report.templates) == ({}, {})


GOOD = report_to_json(a_report("bad"))


@pytest.mark.parametrize(
    "row",
    [
        b"", b"\xff\xfe", "[]", "null", "{}", "[" * 100_000, "NaN", "<html>",
        GOOD | {"at": "yesterday"}, GOOD | {"at": "2026-01-01T00:00:00"}, GOOD | {"resources": {"sim": -1}},
        GOOD | {"resources": {"sim": 1.5}}, GOOD | {"resources": {"sim": True}}, GOOD | {"resources": {"sim": 1e400}},
        GOOD | {"replicas": {}}, GOOD | {"replicas": [{}]}, GOOD | {"replicas": [GOOD["replicas"][0] | {"state": "happy"}]},
        GOOD | {"replicas": [GOOD["replicas"][0] | {"was_ready": 1}]}, GOOD | {"node": "other"}, GOOD | {"pool": "other"},
        GOOD | {"foreign_devices": {"GPU-1": 4}}, GOOD | {"templates": []}, GOOD | {"templates": {"vllm": []}},
        GOOD | {"templates": {"vllm": {"weights": "yes"}}},
        GOOD | {"generation": None}, GOOD | {"node": 5}, GOOD | {"labels": {"zone": 1}}, "x" * 4_000_001,
        GOOD | {"replicas": [GOOD["replicas"][0] | {"name": "x" * 251}]},
        GOOD | {"at": "0001-01-01T00:00:00+10:00"}, GOOD | {"at": "9999-12-31T23:59:59-10:00"},
        GOOD | {"labels": {"zone": "\ud800"}}, GOOD | {"labels": {"\0": "a"}}, GOOD | {"resources": {"\udfff": 1}},
        GOOD | {"unknown_products": ["\0"]}, GOOD | {"replicas": [GOOD["replicas"][0] | {"message": "\ud83d"}]},
    ],
)  # fmt: skip
def test_a_broken_row_is_left_out_and_hurts_no_other(redis_client: redis.Redis, row: Any) -> None:
    write(redis_client, "bad", row)
    write(redis_client, "n1", report_to_json(a_report("n1")))
    assert a_driver(redis_client).observe("p") == [a_report("n1")]


def test_a_key_of_another_kind_is_no_answer(redis_client: redis.Redis) -> None:
    redis_client.set(REPORTS_KEY.format(pool="p"), "x")
    assert a_driver(redis_client).observe("p") is None


def test_no_redis_is_no_answer_rather_than_an_empty_fleet() -> None:
    client = redis.Redis(port=1, retry=Retry(NoBackoff(), 0))
    driver = a_driver(client)
    assert driver.observe("p") is None


def test_an_order_goes_to_its_hosts_queue_and_dies_there_after_a_minute(redis_client: redis.Redis) -> None:
    sent: list[tuple[Any, ...]] = []
    driver = ProcessDriver(redis=redis_client, send=lambda *args: sent.append(args))
    assert driver.apply(an_order()).kind == "accepted"
    assert sent == [("capacity.node_tasks.apply_order", {"order": order_to_json(an_order())}, "node.n1", 60)]


def test_a_broker_that_is_away_is_a_failure_that_may_be_tried_again_and_shows_no_password(redis_client: redis.Redis) -> None:
    def send(*_: object) -> None:
        raise ConnectionError("redis://:hunter2@host")

    outcome = ProcessDriver(redis=redis_client, send=send).apply(an_order())
    assert (outcome.kind, outcome.retryable) == ("failed", True)
    assert "hunter2" not in outcome.message


@given(
    order=st.builds(
        Order, op=st.sampled_from(["start", "undrain", "drain", "cancel"]), pool=NAMES, generation=st.integers(0, 10**9),
        replica=NAMES, model=NAMES, profile=NAMES, nodes=st.lists(NAMES, max_size=3).map(tuple),
        resource=NAMES, units=st.integers(0, 64), template=NAMES,
        parameters=st.dictionaries(NAMES, NAMES, max_size=3), fingerprint=NAMES,
        start_timeout_seconds=st.integers(0, 9999), drain_timeout_seconds=st.integers(0, 9999),
    )
)  # fmt: skip
def test_an_order_survives_its_way_through_json(order: Order) -> None:
    assert order_from_json(json.loads(json.dumps(order_to_json(order)))) == order


def test_a_report_survives_its_way_through_json() -> None:
    assert report_from_json(json.loads(json.dumps(report_to_json(a_report())))) == a_report()


@pytest.mark.parametrize(
    "change",
    [
        {"op": "rm"}, {"generation": "1"}, {"generation": True}, {"nodes": "n1"}, {"parameters": {"a": 1}},
        {"replica": "x" * 501}, {"units": None},
    ],
)  # fmt: skip
def test_a_task_with_a_broken_order_is_refused_with_a_sentence(change: dict[str, Any]) -> None:
    class Agent:
        def apply(self, order: Order) -> Outcome:
            raise AssertionError("a broken order reached the agent")

    serving.serve(Agent())
    try:
        outcome = serving.apply_document(order_to_json(an_order()) | change)
    finally:
        serving.serve(None)
    assert outcome["kind"] == "refused"
    assert next(iter(change)) in str(outcome["message"])


def test_a_process_that_is_no_node_worker_does_no_orders() -> None:
    assert serving.apply_document(order_to_json(an_order()))["kind"] == "refused"


def test_orders_for_a_silent_host_wait_a_minute_and_no_longer() -> None:
    fleet = FakeFleet()
    fleet.add_node("n1", "example", {"sim": 16})
    fleet.silence("n1")
    assert fleet.apply(an_order("start", "late")).kind == "accepted"
    fleet.advance(61)
    fleet.apply(an_order("start", "fresh"))
    [report] = fleet.observe("example")
    assert (report.replicas, (fleet.now() - report.at).total_seconds()) == ((), 61)
    fleet.silence("n1", False)
    fleet.advance(1)
    assert [replica.name for replica in fleet.observe("example")[0].replicas] == ["fresh"]


def test_orders_and_reports_that_do_not_say_an_installation_are_read_as_of_none() -> None:
    order, report = order_to_json(an_order(installation="first")), report_to_json(a_report())
    assert order_from_json(order).installation == "first"
    for document in (order, report):
        document.pop("installation")
    order.pop("taken_over_at_generation")
    assert (order_from_json(order).installation, order_from_json(order).taken_over_at_generation) == ("", 0)
    assert report_from_json(report).installation == ""


def test_why_a_report_is_left_out_is_known_and_logged_once(redis_client: redis.Redis, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "capacity.drivers.process")
    driver = ProcessDriver(redis=redis_client, send=lambda *_, **__: None)
    redis_client.hset(REPORTS_KEY.format(pool="p"), "n1", '{"node": "n1", "replicas": 3}')
    for _ in range(3):
        assert driver.observe("p") == []
    assert driver.unreadable("p") == {"n1": "replicas is not a list"}
    assert len(caplog.records) == 1
    redis_client.delete(REPORTS_KEY.format(pool="p"))
    driver.observe("p")
    assert driver.unreadable("p") == {}
    assert driver.unreadable("another") == {}
