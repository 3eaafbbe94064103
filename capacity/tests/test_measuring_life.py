"""The life of a sweep's run: claimed once, carried to its end whatever happens, and its replica given back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from capacity import services
from capacity.bench.asked import Swept
from capacity.measuring import life, worker
from capacity.measuring.wish import Wish
from capacity.models import BenchRun, Measurement, Replica, Slo
from capacity.tests.fleet import START, Fleet
from capacity.tests.measuring import SLO, SWEPT, Clock, asked_run, carried, outside

pytestmark = pytest.mark.django_db


def test_a_sweep_of_an_address_outside_gives_a_measurement_with_all_it_rests_on() -> None:
    fleet, clock = Fleet(), Clock()
    run = carried(outside(fleet, levels="1,2,4", seconds=30), clock)
    assert (run.state, run.replica) == ("done", None)
    (asked,) = clock.asked
    assert (asked.levels, asked.seconds, asked.model, asked.output_tokens) == ((1, 2, 4), 30, "chat", 128)
    measured = run.measurement
    assert measured is not None
    assert (measured.max_concurrency, measured.tokens_per_second, measured.kind) == (2, 200, "located")
    assert len(measured.evidence["stages"]) == 3
    assert [row["level"] for row in run.stages] == [1, 2, 4]
    assert run.progress["levels_done"] == 3
    assert "new engine" in measured.history.first().history_change_reason
    assert len(clock.said) == 4


def test_a_run_is_claimed_once_and_a_profile_has_one_at_a_time() -> None:
    fleet, clock = Fleet(), Clock()
    run = outside(fleet)
    assert life.claim(run, clock.now())
    assert not life.claim(run, clock.now())
    with pytest.raises(ValidationError, match="testing already: wait for it, or stop it"):
        outside(fleet)


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"slo": "quick"}, "slo"),
        ({"slo": ""}, "slo"),
        ({"levels": "0,2"}, "levels"),
        ({"seconds": 0}, "seconds"),
        ({"api": "soap"}, "api"),
        ({"where": "there"}, "where"),
        ({"endpoint": "ftp://x"}, "endpoint"),
        ({"endpoint": "http://169.254.169.254/"}, "endpoint"),
        ({"input_tokens": 10**9}, "input_tokens"),
    ],
)
def test_a_wish_that_cannot_be_is_refused_by_field_and_nothing_is_stored(wish: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        asked_run(Fleet(), **wish)
    assert list(refused.value.message_dict) == [field]
    assert not BenchRun.objects.exists()


def test_without_a_reason_nothing_is_measured() -> None:
    fleet = Fleet()
    with pytest.raises(ValidationError, match="Say why"):
        services.bench_start(fleet.profile, Wish(slo=SLO), actor=None, reason=" ", now=START)


def test_the_usual_lengths_and_slo_are_the_models() -> None:
    slo = Slo.objects.create(name="fast", ttft_percentile=95, ttft_ms=500)
    fleet = Fleet(slo=slo, input_tokens=2000)
    run = asked_run(fleet, slo="")
    assert (run.slo, run.input_tokens, run.output_tokens, run.own_replica) == (slo, 2000, 128, True)


def test_a_queued_run_is_stopped_at_once_and_one_that_is_over_not_again() -> None:
    run = outside(Fleet())
    services.bench_stop(run, actor=None, now=START)
    assert run.state == "stopped"
    assert worker.next_due() is None
    with pytest.raises(ValidationError, match="over already"):
        services.bench_stop(run, actor=None, now=START)


def test_one_under_way_is_stopped_and_stores_nothing() -> None:
    fleet, clock = Fleet(), Clock()
    run, before = outside(fleet), Measurement.objects.count()
    clock.each = lambda: BenchRun.objects.update(stop_asked=True) and None
    run = carried(run, clock)
    assert (run.state, run.message) == ("stopped", "It was stopped.")
    assert Measurement.objects.count() == before


def test_a_worker_that_is_to_end_stops_its_run() -> None:
    fleet, clock = Fleet(), Clock()
    run = outside(fleet)
    clock.each = lambda: setattr(clock, "ending", True)
    run = carried(run, clock)
    assert (run.state, run.message) == ("stopped", "Its worker was ended.")


@pytest.mark.parametrize(("error", "state"), [(RuntimeError("x"), "failed"), (KeyboardInterrupt(), "stopped")])
def test_whatever_breaks_ends_the_run(error: BaseException, state: str) -> None:
    fleet, clock = Fleet(), Clock()
    run = outside(fleet)

    def broken() -> None:
        raise error

    clock.each = broken
    assert life.claim(run, clock.now())
    try:
        life.carry(run, clock.means)
    except KeyboardInterrupt:
        run.refresh_from_db()
    assert run.state == state


def test_a_sweep_that_fails_says_why_and_stores_nothing() -> None:
    fleet, clock = Fleet(), Clock()
    clock.swept = replace(SWEPT, stages=(), ended="failed", why="Nobody answers there.")
    run = carried(outside(fleet), clock)
    assert (run.state, run.message, run.measurement) == ("failed", "Nobody answers there.", None)


def test_one_whose_worker_is_not_heard_for_a_minute_is_failed_and_what_is_late_writes_nothing() -> None:
    fleet, clock = Fleet(), Clock()
    run = outside(fleet)
    clock.each = lambda: life.end_unheard(clock.time + timedelta(minutes=2)) and None
    run = carried(run, clock)
    assert run.state == "failed"
    assert "Its worker is gone" in run.message
    assert run.measurement is None
    assert life.end_unheard(START + timedelta(days=1)) == 0


def test_a_queued_run_waits_for_its_worker_however_long() -> None:
    run = outside(Fleet())
    assert life.end_unheard(START + timedelta(days=1)) == 0
    run.refresh_from_db()
    assert run.state == "queued"


@pytest.mark.parametrize(("mode", "given_back"), [("auto", False), ("advise", True), ("paused", True)])
def test_one_of_its_own_is_started_swept_and_given_back(mode: str, given_back: bool) -> None:
    fleet = Fleet(min_replicas=0, mode=mode, max_replicas=3)
    clock = Clock(fleet)
    run = carried(asked_run(fleet), clock)
    assert (run.state, run.give_back) == ("done", given_back)
    assert run.replica is not None
    assert clock.asked[0].endpoint == run.replica.url
    if given_back:
        fleet.passes(3)
        assert fleet.names("ready", "draining") == []


def test_one_that_waits_for_room_says_so_and_can_be_stopped() -> None:
    fleet = Fleet(min_replicas=2, units=2)
    fleet.passes(2)
    clock = Clock(fleet)
    run, said = asked_run(fleet), []

    def look() -> None:
        said.append(BenchRun.objects.get().message)
        if len(said) == 3:
            services.bench_stop(BenchRun.objects.get(), actor=None, now=clock.now())

    clock.each = look
    run = carried(run, clock)
    assert run.state == "stopped"
    assert any("no node has the room" in text for text in said)


def test_one_that_never_gets_room_gives_up() -> None:
    fleet, clock = Fleet(mode="advise"), Clock()
    clock.each = lambda: setattr(clock, "time", clock.time + timedelta(minutes=5))
    run = carried(asked_run(fleet), clock)
    assert run.state == "failed"
    assert "in an hour" in run.message


def test_one_that_runs_is_taken_emptied_and_swept() -> None:
    fleet = Fleet(min_replicas=1)
    fleet.passes(2)
    clock = Clock(fleet)
    clock.load = 3
    waits: list[str] = []

    def empties() -> None:
        waits.append(BenchRun.objects.get().state)
        clock.load = max(0, clock.load - 1)

    clock.each = empties
    run = carried(asked_run(fleet, where="take", take_last=True), clock)
    assert run.state == "done"
    assert waits[0] == "emptying"
    assert run.replica == Replica.objects.order_by("created_at").first()
    assert not run.give_back


def test_one_is_given_back_only_when_it_was_read_idle_after_its_sweep_but_soon_in_any_case() -> None:
    fleet = Fleet(min_replicas=1)
    fleet.passes(2)
    clock, waited = Clock(fleet), []
    swept = clock.sweep

    def busy(*args: Any, **more: Any) -> Swept:
        found = swept(*args, **more)
        clock.load, clock.each = 7, lambda: waited.append(BenchRun.objects.get().state)
        return found

    clock.sweep = busy  # type: ignore[method-assign]
    run = carried(asked_run(fleet, where="take", take_last=True), clock)
    assert run.state == "done"
    assert 3 <= len(waited) <= 5 and set(waited) == {"testing"}


def test_one_that_does_not_empty_is_given_back_unmeasured() -> None:
    fleet = Fleet(min_replicas=1, drain_timeout_seconds=20)
    fleet.passes(2)
    clock = Clock(fleet)
    clock.load = 3
    run = carried(asked_run(fleet, where="take", take_last=True), clock)
    assert run.state == "failed"
    assert "was not empty after 20 s: it still serves 3" in run.message


def test_where_none_is_ready_there_is_none_to_take() -> None:
    run = carried(asked_run(Fleet(), where="take"), Clock())
    assert (run.state, run.message) == ("failed", life.NONE_TO_TAKE)
