"""The life of a sweep's run: claimed once, carried to its end whatever happens, and its replica given back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from capacity import services
from capacity.bench.asked import Asked, Progress, Swept
from capacity.domain.measurement.types import Setting, Stage
from capacity.fingerprints import present_print
from capacity.measuring import life, worker
from capacity.measuring.keeper import Keeper, Means
from capacity.measuring.wish import Wish
from capacity.models import BenchRun, LanguageModel, Measurement, Profile, Replica, Slo
from capacity.tests.factories import make_profile
from capacity.tests.fleet import START, Fleet

pytestmark = pytest.mark.django_db

SLO = "ttft p95 500, tpot p95 50"


def stage(level: int, ttft: float) -> Stage:
    latencies = {"ttft_ms": {"p95": ttft, "mean": ttft}, "tpot_ms": {"p95": 20.0, "mean": 20.0}}
    return Stage(
        where=f"level {level}",
        asked=level,
        mean_in_flight=float(level),
        requests=400,
        errors=0,
        seconds=60.0,
        tokens_per_second=100.0 * level,
        **latencies,
    )


STAGES = (stage(1, 100), stage(2, 200), stage(4, 900))
SWEPT = Swept(setting=Setting(tool="llmgw"), stages=STAGES, ended="complete", why="The limit is found.")


class Clock:
    """A worker's means: time passes only where it is waited for, and `at` says what happens meanwhile."""

    def __init__(self, fleet: Fleet | None = None) -> None:
        self.fleet, self.time, self.load, self.asked = fleet, START, 0, []
        self.each: Callable[[], None] = lambda: None
        self.said: list[str] = []
        self.ending = False
        self.swept = SWEPT

    def now(self) -> datetime:
        return self.fleet.fake.now() if self.fleet else self.time

    def pause(self, seconds: float) -> None:
        if self.fleet:
            self.fleet.passes(1, seconds=5)
        self.time += timedelta(seconds=seconds)
        self.each()

    def sweep(self, asked: Asked, *, progress: Callable[[Progress], None], should_stop: Callable[[], bool]) -> Swept:
        self.asked.append(asked)
        for count in range(len(self.swept.stages) + 1):
            self.time += timedelta(seconds=3)
            if self.fleet:
                self.fleet.fake.advance(3)
            progress(Progress(doing="measuring", level=8, stages=self.swept.stages[:count], levels_left=2, seconds_left=61.5))
            self.each()
            if should_stop():
                return replace(self.swept, ended="stopped", why="It was stopped.")
        return self.swept

    @property
    def means(self) -> Means:
        return Means(
            sweep=self.sweep,
            now=self.now,
            pause=self.pause,
            load=lambda run: (self.load, self.now() + timedelta(seconds=3)),
            ends=lambda: self.ending,
            say=self.said.append,
        )


def asked_run(fleet: Fleet, **wish: Any) -> BenchRun:
    return services.bench_start(
        fleet.profile, Wish(**{"slo": SLO, **wish}), actor=None, reason="new engine", now=fleet.fake.now()
    )


def carried(run: BenchRun, clock: Clock) -> BenchRun:
    assert life.claim(run, clock.now())
    return life.carry(run, clock.means)


def outside(fleet: Fleet, **wish: Any) -> BenchRun:
    return asked_run(fleet, endpoint="http://127.0.0.1:9999", **wish)


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
