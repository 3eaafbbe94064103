"""One look at a replica: what it changes, as a table."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.node.lifecycle import Act, Seen, Timing, Watch, state_when_taken_back, step
from capacity.node.record import Record
from capacity.ports import ReportedState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIMING = Timing(routing_grace_seconds=5, kill_after_seconds=10, keep_exited_seconds=900)


def a_record(state: ReportedState, lasted_seconds: float = 0, ending_seconds: float | None = None) -> Record:
    return Record(
        name="a", model="m", profile="p", nodes=("n",), resource="sim", units=1, template="t", generation=1,
        drain_timeout_seconds=60, state=state, since=NOW - timedelta(seconds=lasted_seconds), pid=1, birth="b",
        ending_since=None if ending_seconds is None else NOW - timedelta(seconds=ending_seconds),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("record", "watch", "seen", "state", "act"),
    [
        (a_record("starting"), Watch(), Seen(alive=True, healthy=False), "starting", "nothing"),
        (a_record("starting"), Watch(unhealthy=500), Seen(alive=True, healthy=True), "ready", "nothing"),
        (a_record("starting"), Watch(), Seen(alive=False), "starting", "exited"),
        (a_record("ready"), Watch(unhealthy=1), Seen(alive=True, healthy=False), "ready", "nothing"),
        (a_record("ready"), Watch(unhealthy=2), Seen(alive=True, healthy=False), "unready", "nothing"),
        (a_record("ready"), Watch(unhealthy=2), Seen(alive=True), "ready", "nothing"),
        (a_record("ready"), Watch(), Seen(alive=False), "ready", "exited"),
        (a_record("unready"), Watch(unhealthy=9), Seen(alive=True, healthy=True), "ready", "nothing"),
        (a_record("unready"), Watch(unhealthy=9), Seen(alive=True, healthy=False), "unready", "nothing"),
        (a_record("draining", 4.9), Watch(quiet=9), Seen(alive=True, in_flight=0), "draining", "nothing"),
        (a_record("draining", 5), Watch(quiet=0), Seen(alive=True, in_flight=0), "draining", "nothing"),
        (a_record("draining", 5), Watch(quiet=1), Seen(alive=True, in_flight=0), "draining", "terminate"),
        (a_record("draining", 59), Watch(quiet=9), Seen(alive=True, in_flight=None), "draining", "nothing"),
        (a_record("draining", 59), Watch(quiet=9), Seen(alive=True, in_flight=1), "draining", "nothing"),
        (a_record("draining", 60), Watch(), Seen(alive=True, in_flight=7), "draining", "terminate"),
        (a_record("draining", 9), Watch(), Seen(alive=False), "draining", "exited"),
        (a_record("draining", 9, 1), Watch(), Seen(alive=False), "draining", "gone"),
        (a_record("draining", 9, 9.9), Watch(), Seen(alive=True), "draining", "nothing"),
        (a_record("draining", 9, 10), Watch(), Seen(alive=True), "draining", "kill"),
        (a_record("exited", 899), Watch(), Seen(alive=False), "exited", "nothing"),
        (a_record("exited", 900), Watch(), Seen(alive=False), "exited", "gone"),
    ],
)
def test_a_look_changes_what_the_table_says(record: Record, watch: Watch, seen: Seen, state: ReportedState, act: Act) -> None:
    after, _, done = step(record, watch, seen, NOW, TIMING)
    assert (after.state, done) == (state, act)
    assert after.since == (record.since if state == record.state else NOW)


def test_a_replica_that_was_ready_once_remembers_it() -> None:
    ready, watch, _ = step(a_record("starting"), Watch(), Seen(alive=True, healthy=True), NOW, TIMING)
    for _ in range(3):
        ready, watch, _ = step(ready, watch, Seen(alive=True, healthy=False), NOW, TIMING)
    assert (ready.state, ready.was_ready) == ("unready", True)


def test_a_drain_that_is_taken_back_leaves_an_unhealthy_replica_unready() -> None:
    assert state_when_taken_back(Watch(unhealthy=3)) == "unready"
    assert state_when_taken_back(Watch(unhealthy=2)) == "ready"


@given(flights=st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=40))
def test_before_its_timeout_no_drain_ends_but_after_two_looks_in_a_row_at_none_in_flight(flights: list[int | None]) -> None:
    record, watch, now = replace(a_record("draining"), drain_timeout_seconds=1000), Watch(), NOW
    for index, in_flight in enumerate(flights):
        now += timedelta(seconds=1)
        record, watch, act = step(record, watch, Seen(alive=True, healthy=True, in_flight=in_flight), now, TIMING)
        quiet = index >= 1 and flights[index - 1 : index + 1] == [0, 0]
        assert (act == "terminate") == (quiet and index + 1 >= 5)
