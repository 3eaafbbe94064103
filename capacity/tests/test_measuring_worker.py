"""The worker for sweeps: what it takes up, what waits without holding it, and what changes under it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from capacity import services
from capacity.bench.asked import Progress
from capacity.fingerprints import present_print
from capacity.measuring import life, worker
from capacity.measuring.keeper import Keeper
from capacity.measuring.wish import Wish
from capacity.models import BenchRun, LanguageModel, Profile, Replica, Slo
from capacity.tests.factories import make_profile
from capacity.tests.fleet import START, Fleet
from capacity.tests.measuring import SLO, Clock, asked_run, carried, outside

pytestmark = pytest.mark.django_db


def test_the_worker_carries_what_is_queued_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet, clock = Fleet(), Clock()
    monkeypatch.setattr(worker, "sweep", clock.sweep)
    first = outside(fleet)
    other = make_profile(fleet.model, "large")
    wish = Wish(slo=SLO, endpoint="http://127.0.0.1:9998")
    services.bench_start(other, wish, actor=None, reason="new engine", now=fleet.fake.now() + timedelta(seconds=1))
    worker.run_queued()
    assert [asked.endpoint for asked in clock.asked] == ["http://127.0.0.1:9999", "http://127.0.0.1:9998"]
    assert set(BenchRun.objects.values_list("state", flat=True)) == {"done"}
    worker.run_queued()  # a second delivery finds nothing to do
    assert len(clock.asked) == 2
    assert first.profile.measurements.count() == 2


def with_another(fleet: Fleet, clock: Clock, monkeypatch: pytest.MonkeyPatch, **wish: Any) -> tuple[BenchRun, BenchRun]:
    """A run that needs a replica of its own, and behind it one that needs none."""
    monkeypatch.setattr(worker, "sweep", clock.sweep)
    monkeypatch.setattr(worker, "now", clock.now)
    monkeypatch.setattr(worker, "load_of", lambda run: (0, clock.now() + timedelta(seconds=3)))
    own = asked_run(fleet, **wish)
    later = fleet.fake.now() + timedelta(seconds=1)
    other = Wish(slo=SLO, endpoint="http://127.0.0.1:9998")
    behind = services.bench_start(make_profile(fleet.model, "large"), other, actor=None, reason="new", now=later)
    worker.run_queued()
    own.refresh_from_db()
    behind.refresh_from_db()
    return own, behind


def test_one_that_waits_for_a_replica_of_its_own_holds_up_no_other_and_is_taken_up_when_it_is_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fleet = Fleet(min_replicas=0, mode="advise", max_replicas=3)
    clock = Clock(fleet)
    own, behind = with_another(fleet, clock, monkeypatch)
    assert (own.state, own.parked, behind.state) == ("waiting", True, "done")
    told: list[str] = []
    monkeypatch.setattr(worker, "wake_worker", told.append)
    for _ in range(12):
        fleet.passes(1, seconds=5)
        worker.watch(fleet.fake.now())
    assert told
    worker.run_queued()
    own.refresh_from_db()
    assert (own.state, own.parked, own.give_back) == ("done", False, True)
    assert own.replica is not None
    assert clock.asked[-1].endpoint == own.replica.url
    assert worker.next_due() is None


def test_one_that_waits_is_stopped_at_once_gives_up_after_an_hour_and_is_failed_when_nobody_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fleet = Fleet(min_replicas=2, units=2)
    fleet.passes(2)
    own, _ = with_another(fleet, Clock(fleet), monkeypatch)
    waits = {"state": "waiting", "parked": True, "ended_at": None, "stop_asked": False}

    services.bench_stop(own, actor=None, now=fleet.fake.now())
    assert (own.state, own.parked, own.stopped_by) == ("stopped", False, "the command line")
    assert own.started_at is not None
    for heard, after, why in ((59, 61, "in an hour"), (0, 61, "Its worker is gone")):
        BenchRun.objects.filter(pk=own.pk).update(**waits, heartbeat_at=own.started_at + timedelta(minutes=heard, seconds=90))
        worker.watch(own.started_at + timedelta(minutes=after))
        own.refresh_from_db()
        assert own.state == "failed" and why in own.message


def test_the_only_ready_replica_is_not_taken_unless_that_was_said() -> None:
    fleet = Fleet(min_replicas=2)
    fleet.passes(2)
    run = asked_run(fleet, where="take")
    Replica.objects.filter(name=fleet.names("ready")[0]).update(state="draining")
    run = carried(run, Clock(fleet))
    assert run.state == "failed"
    assert "the only ready replica of chat" in run.message


def test_what_is_queued_is_told_to_the_worker_again_until_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(worker, "wake_worker", told.append)
    fleet = Fleet()
    worker.watch(START)
    run = outside(fleet)
    worker.watch(START)
    assert life.claim(run, START)
    worker.watch(START)
    assert len(told) == 1 and told[0].startswith("bench.")


def test_a_clock_that_is_set_back_delays_neither_the_stop_button_nor_the_heartbeat() -> None:
    clock = Clock()
    run = BenchRun.objects.create(profile=make_profile(), state="testing", heartbeat_at=START)
    keeper = Keeper(run, clock.means)
    assert not keeper.should_stop()
    clock.time -= timedelta(hours=1)
    BenchRun.objects.update(stop_asked=True)
    keeper.progress(Progress(doing="measuring", level=1))
    assert keeper.should_stop()
    assert BenchRun.objects.get().heartbeat_at == clock.time


def edit(fleet: Fleet, version: str) -> None:
    profile = Profile.objects.get(pk=fleet.profile.pk)
    profile.engine_version = version
    services.save(profile, actor=None, reason="upgrade")


def while_it_tests(run: BenchRun, do: Callable[[], Any]) -> Callable[[], None]:
    """Once, as soon as the run is testing."""
    left = [do]

    def each() -> None:
        if left and BenchRun.objects.filter(pk=run.pk, state="testing").exists():
            left.pop()()

    return each


@pytest.mark.parametrize("wish", [{"where": "own"}, {"where": "take"}, {"endpoint": "http://127.0.0.1:9999"}])
def test_what_is_measured_while_its_profile_is_changed_is_outdated_and_good_again_when_it_is_changed_back(
    wish: dict[str, str],
) -> None:
    slo = Slo.objects.create(name="fast", ttft_percentile=95, ttft_ms=500, tpot_percentile=95, tpot_ms=50)
    fleet = Fleet(min_replicas=2, slo=slo)
    clock = Clock(fleet)
    fleet.passes(3)
    run = asked_run(fleet, slo="", **wish)
    clock.each = while_it_tests(run, lambda: edit(fleet, "2"))
    measured = carried(run, clock).measurement
    assert measured is not None
    assert (measured.status, measured.stale_cause) == ("stale", "fingerprint")
    assert measured.stale_why == "It was measured of what the profile was before it was changed."
    edit(fleet, "")
    measured.refresh_from_db()
    assert measured.fingerprint == present_print(Profile.objects.get())


def test_no_replica_is_taken_that_runs_what_the_profile_was_before() -> None:
    fleet = Fleet(min_replicas=2)
    fleet.passes(3)
    edit(fleet, "2")
    run = carried(asked_run(fleet, where="take"), Clock(fleet))
    assert (run.state, run.message, run.replica) == ("failed", life.NONE_TO_TAKE, None)


@pytest.mark.parametrize("kind", [BenchRun, Profile, LanguageModel])
def test_a_run_that_is_removed_with_its_profile_ends_and_its_worker_goes_on(kind: Any) -> None:
    fleet, clock = Fleet(), Clock()
    run = outside(fleet)
    clock.each = while_it_tests(run, lambda: kind.objects.all().delete())
    run = carried(run, clock)
    assert (run.state, run.message) == ("failed", "Its profile was removed while it ran: nothing is stored.")
    assert not BenchRun.objects.exists()
    assert not life.claim(run, START)
