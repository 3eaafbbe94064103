"""What every fleet driver does alike: the fleet in memory and the process driver over real engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from .node_harness import Fleet, FleetInMemory, FleetOfProcesses, an_order


@pytest.fixture(params=["fake", "process"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    if request.param == "fake":
        yield FleetInMemory()
        return
    client: redis.Redis = request.getfixturevalue("redis_client")
    made = FleetOfProcesses(tmp_path, client)
    yield made
    made.close()


def test_a_start_is_seen_as_starting_and_then_as_ready(fleet: Fleet) -> None:
    assert fleet.apply(an_order(template="loading")).kind == "accepted"
    assert fleet.state() == "starting"
    fleet.finish_loading()
    fleet.until(lambda: fleet.state() == "ready")
    replica = fleet.replica()
    assert replica is not None
    assert (replica.model, replica.profile, replica.nodes, replica.resource, replica.units) == ("chat", "p", ("n1",), "sim", 4)
    assert (replica.generation, replica.fingerprint, replica.was_ready) == (1, "f1", True)
    assert replica.url is not None


def test_the_same_start_twice_is_one_replica(fleet: Fleet) -> None:
    fleet.start()
    before = fleet.replica()
    assert fleet.apply(an_order()).kind == "accepted"
    assert fleet.apply(an_order(generation=2)).kind == "accepted"
    fleet.advance(2)
    assert fleet.report().replicas == (before,)


def test_an_order_of_an_older_generation_is_refused_and_changes_nothing(fleet: Fleet) -> None:
    fleet.start(generation=5)
    outcome = fleet.apply(an_order("drain", generation=4))
    assert outcome.kind == "refused"
    assert "4" in outcome.message
    assert fleet.state() == "ready"
    assert fleet.report().generation == 5


def test_the_first_installation_that_orders_is_obeyed_from_then_on_also_after_a_restart(fleet: Fleet) -> None:
    fleet.start(generation=5, installation="first")
    assert (fleet.report().generation, fleet.report().installation) == (5, "first")
    fleet.restart()
    for other in ("second", ""):
        outcome = fleet.apply(an_order("drain", generation=9, installation=other))
        assert outcome.kind == "refused"
        assert "first" in outcome.message
    assert fleet.state() == "ready"
    assert (fleet.report().generation, fleet.report().installation) == (5, "first")


def test_another_installation_is_obeyed_once_it_has_taken_the_pool_over_and_the_first_no_more(fleet: Fleet) -> None:
    fleet.start(generation=5, installation="first")
    behind = an_order("drain", generation=9, installation="second", taken_over_at_generation=5)
    assert fleet.apply(behind).kind == "refused"
    fleet.start("chat-2", generation=9, installation="second", taken_over_at_generation=6)
    assert (fleet.report().generation, fleet.report().installation) == (9, "second")
    for generation in (6, 20):
        assert fleet.apply(an_order("drain", generation=generation, installation="first")).kind == "refused"
    assert fleet.state() == "ready"
    assert fleet.apply(an_order("drain", "chat-2", 10, installation="second", taken_over_at_generation=6)).kind == "accepted"


def test_a_cancel_of_nothing_tells_a_host_of_a_take_over_and_changes_no_replica(fleet: Fleet) -> None:
    fleet.start(generation=5, installation="first")
    before = fleet.replica()
    told = an_order(
        "cancel", "take-over-9", 9, model="", profile="", resource="", units=0, template="",
        installation="second", taken_over_at_generation=9,
    )  # fmt: skip
    assert fleet.apply(told).kind == "accepted"
    fleet.advance(6)
    assert (fleet.report().generation, fleet.report().installation) == (9, "second")
    assert fleet.report().replicas == (before,)
    assert fleet.apply(an_order("drain", generation=12, installation="first")).kind == "refused"


def test_a_host_that_has_obeyed_nobody_in_particular_takes_the_first_that_says_who_it_is(fleet: Fleet) -> None:
    fleet.start(generation=1)
    assert fleet.report().installation == ""
    fleet.start("chat-2", generation=2, installation="first")
    assert fleet.report().installation == "first"


def test_the_highest_generation_outlives_a_restart_of_the_host(fleet: Fleet) -> None:
    fleet.start(generation=5)
    fleet.restart()
    assert fleet.apply(an_order("start", "chat-2", 4)).kind == "refused"
    assert fleet.report().generation == 5


def test_a_replica_runs_on_through_a_restart_of_its_host_and_is_adopted(fleet: Fleet) -> None:
    fleet.start()
    before = fleet.replica()
    fleet.restart()
    fleet.advance(2)
    assert fleet.replica() == before


def test_a_drain_lasts_while_requests_are_in_flight_and_ends_with_the_last(fleet: Fleet) -> None:
    fleet.start()
    fleet.in_flight["chat-1"] = 2
    assert fleet.apply(an_order("drain", generation=2)).kind == "accepted"
    fleet.advance(60)
    assert fleet.state() == "draining"
    fleet.in_flight["chat-1"] = 0
    fleet.advance(3)
    fleet.until(lambda: fleet.state() == "gone")


def test_an_idle_drain_still_waits_for_gateways_to_stop_sending(fleet: Fleet) -> None:
    fleet.start()
    fleet.apply(an_order("drain", generation=2))
    fleet.advance(3)
    assert fleet.state() == "draining"
    fleet.advance(5)
    fleet.until(lambda: fleet.state() == "gone")


def test_a_drain_ends_at_its_timeout_whatever_is_in_flight(fleet: Fleet) -> None:
    fleet.start()
    fleet.in_flight["chat-1"] = 2
    fleet.apply(an_order("drain", generation=2, drain_timeout_seconds=20))
    fleet.advance(18)
    assert fleet.state() == "draining"
    fleet.advance(3)
    fleet.until(lambda: fleet.state() == "gone")


def test_the_same_drain_twice_does_not_begin_anew(fleet: Fleet) -> None:
    fleet.start()
    fleet.in_flight["chat-1"] = 1
    fleet.apply(an_order("drain", generation=2))
    since = fleet.replica().since
    fleet.advance(3)
    assert fleet.apply(an_order("drain", generation=3)).kind == "accepted"
    assert fleet.replica().since == since


def test_a_drain_can_be_taken_back(fleet: Fleet) -> None:
    fleet.start()
    fleet.in_flight["chat-1"] = 1
    fleet.apply(an_order("drain", generation=2))
    fleet.advance(10)
    assert fleet.apply(an_order("undrain", generation=3)).kind == "accepted"
    assert fleet.state() == "ready"
    fleet.in_flight["chat-1"] = 0
    fleet.advance(30)
    assert fleet.state() == "ready"


def test_what_is_gone_can_be_drained_and_cancelled_but_not_taken_back(fleet: Fleet) -> None:
    assert fleet.apply(an_order("drain", "never")).kind == "accepted"
    assert fleet.apply(an_order("cancel", "never")).kind == "accepted"
    assert fleet.apply(an_order("undrain", "never")).kind == "failed"


def test_cancel_ends_a_starting_replica_at_once(fleet: Fleet) -> None:
    fleet.apply(an_order(template="loading"))
    assert fleet.apply(an_order("cancel", generation=2)).kind == "accepted"
    assert fleet.state() in {"draining", "gone"}
    fleet.until(lambda: fleet.state() == "gone")


def test_cancel_of_a_replica_that_became_ready_meanwhile_is_refused(fleet: Fleet) -> None:
    fleet.start()
    assert fleet.apply(an_order("cancel", generation=2)).kind == "refused"
    fleet.advance(2)
    assert fleet.state() == "ready"


def test_a_killed_replica_is_seen_as_exited_and_kept_for_a_while(fleet: Fleet) -> None:
    fleet.start()
    fleet.kill("chat-1")
    fleet.advance(1)
    replica = fleet.replica()
    assert replica is not None
    assert (replica.state, replica.exit_code, replica.was_ready, replica.url) == ("exited", -9, True, None)
    fleet.advance(890)
    assert fleet.state() == "exited"
    fleet.advance(20)
    assert fleet.state() == "gone"


def test_what_an_exited_replica_held_is_free_again(fleet: Fleet) -> None:
    fleet.start(units=16)
    fleet.kill("chat-1")
    fleet.advance(1)
    assert fleet.apply(an_order("start", "chat-2", 2, units=16)).kind == "accepted"


def test_an_exit_before_ready_is_reported_with_the_last_lines(fleet: Fleet) -> None:
    fleet.apply(an_order(model="broken"))
    fleet.until(lambda: fleet.state() == "exited")
    replica = fleet.replica()
    assert replica is not None
    assert (replica.exit_code, replica.was_ready) == (1, False)
    assert "RuntimeError: no weights" in replica.message


def test_a_late_copy_of_a_start_does_not_revive_an_exited_replica_but_a_newer_order_does(fleet: Fleet) -> None:
    fleet.start()
    fleet.kill("chat-1")
    fleet.advance(1)
    assert fleet.apply(an_order()).kind == "failed"
    assert fleet.state() == "exited"
    fleet.start(generation=2)


def test_a_hanging_replica_becomes_unready_after_three_looks(fleet: Fleet) -> None:
    fleet.start()
    fleet.hang("chat-1")
    fleet.advance(3)
    assert fleet.state() == "unready"


def test_more_units_than_are_free_are_not_started_and_the_report_says_so(fleet: Fleet) -> None:
    fleet.start(units=12)
    outcome = fleet.apply(an_order("start", "chat-2", units=5))
    assert outcome.kind == "failed"
    assert "4" in outcome.message
    replica = fleet.replica("chat-2")
    assert replica is not None
    assert (replica.state, replica.was_ready, replica.exit_code, replica.message) == ("exited", False, None, outcome.message)


def test_a_replica_over_several_hosts_is_refused(fleet: Fleet) -> None:
    outcome = fleet.apply(an_order(nodes=("n1", "n2")))
    assert outcome.kind == "refused"
    assert fleet.report().replicas == ()


def test_an_order_for_another_pool_is_refused(fleet: Fleet) -> None:
    assert fleet.apply(an_order(pool="other")).kind == "refused"
    assert fleet.report().replicas == ()


def test_a_pool_without_nodes_has_no_reports(fleet: Fleet) -> None:
    assert list(fleet.driver.observe("empty")) == []
