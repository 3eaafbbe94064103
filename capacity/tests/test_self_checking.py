"""The self-check from engines' answers to the row: what engines count, the passes' loads and Redis, minute by minute."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from capacity.domain.probation import REST
from capacity.exporter import doubts
from capacity.last_good_views import load_measurements
from capacity.models import BenchRun, LanguageModel, Measurement, Replica, Sample, Slo
from capacity.samples import pack
from capacity.self_checking import check_pool
from capacity.services.contradicting import contradicted
from capacity.simulator.metrics import EngineMetrics
from capacity.sources.reading import read_engine
from capacity.sources.store import LoadStore
from capacity.tests.fleet import START, Fleet

pytestmark = pytest.mark.django_db
CONCURRENCY = 10


class Live:
    """One ready replica whose simulated engine is read each minute, and a pass each 15 s that records its load."""

    def __init__(self, redis: Any) -> None:
        self.fleet = Fleet(min_replicas=1, slo=Slo.objects.create(name="fast", ttft_percentile=95, ttft_ms=500))
        self.fleet.passes(2)
        self.replica = Replica.objects.get()
        self.now = self.fleet.fake.now()
        self.store = LoadStore(redis)
        self.engine = EngineMetrics("chat")

    def minute(self, seconds: float, load: int | None = 5, requests: int = 20, tokens: int = 100, state: str = "ready") -> int:
        """A minute in which so many requests saw their first token after `seconds`; how many measurements were contradicted."""
        for _ in range(requests):
            self.engine.first_token(tokens, seconds)
            self.engine.further_tokens(tokens - 1, 0.02)
            self.engine.finished("stop", seconds + 2)
        for _ in range(4):
            self.now += timedelta(seconds=15)
            row = (self.replica.pk, load, CONCURRENCY, None, state)
            Sample.objects.create(model=self.fleet.model, at=self.now, replicas=pack([row]))
        return self.look()

    def look(self) -> int:
        text = self.engine.render(running=5, waiting=0, kv_cache_usage=0.1)
        self.store.write("p", {self.replica.name: read_engine(text).sample(self.now)}, self.now)
        return check_pool(self.fleet.pool, self.store, self.store, self.now)


@pytest.fixture
def live(redis_client: Any) -> Live:
    return Live(redis_client)


def measurement() -> Measurement:
    return Measurement.objects.get()


def test_an_engine_that_is_slower_than_measured_makes_its_measurement_outdated_and_removals_rest(live: Live) -> None:
    said = [live.minute(2.0) for _ in range(33)]
    assert sum(said) == 1
    found = measurement()
    assert (found.status, found.stale_cause) == ("stale", "self_check")
    assert "Below 90 % of its 10 requests in flight the SLO is missed: 0 % of" in found.stale_why
    assert found.history.first().history_change_reason == "the self-check: live latencies contradict it"
    rest = LanguageModel.objects.get().removals_rest_until
    assert rest is not None and rest > START + REST
    assert [(pool, model, code) for pool, model, code, _ in load_measurements(None).doubted] == [("p", "chat", "optimistic")]
    live.fleet.fake.advance(int((live.now - live.fleet.fake.now()).total_seconds()))
    live.fleet.passes(1)
    codes = {problem["code"] for problem in live.fleet.pool.passes.latest("at").problems}
    assert {"optimistic", "removals_rest"} <= codes


def test_what_somebody_changed_meanwhile_is_not_marked(live: Live) -> None:
    seen = measurement()
    Measurement.objects.update(max_concurrency=3)
    assert not contradicted(seen, "why", live.now)
    assert (measurement().status, LanguageModel.objects.get().removals_rest_until) == ("current", None)


def test_programs_are_told_how_many_are_doubted(live: Live) -> None:
    Measurement.objects.update(status="stale", stale_cause="self_check", stale_why="too slow")
    (family,) = doubts([live.fleet.lease])
    assert {row.labels["kind"]: row.value for row in family.samples} == {"optimistic": 1, "off_shape": 0}


def test_one_that_is_as_quick_as_measured_stays_in_force_with_its_figures(live: Live) -> None:
    for _ in range(33):
        live.minute(0.2)
    assert measurement().status == "current"
    assert measurement().self_check["sentence"].startswith("Below 90 % of its 10 requests in flight: 100 % of")
    assert measurement().history.count() == 1  # as it was made


@pytest.mark.parametrize("load", [None, 9, 30])
def test_slow_answers_under_an_unknown_or_a_high_load_say_nothing_against_it(live: Live, load: int | None) -> None:
    for _ in range(40):
        live.minute(2.0, load)
    assert measurement().status == "current"


def test_what_a_sweep_does_to_an_engine_counts_nothing(live: Live) -> None:
    BenchRun.objects.create(profile=live.fleet.profile, replica=live.replica, state=BenchRun.State.TESTING)
    for _ in range(40):
        live.minute(2.0)
    assert (measurement().status, measurement().self_check) == ("current", {})


def test_a_sweep_that_began_and_ended_between_two_looks_counts_nothing_either(live: Live) -> None:
    for _ in range(40):
        live.minute(2.0, None, state="under_test")
    assert (measurement().status, measurement().self_check) == ("current", {})


def test_accepted_it_is_judged_anew(live: Live) -> None:
    for _ in range(33):
        live.minute(2.0)
    Measurement.objects.update(status="current", stale_cause="")
    assert [live.minute(2.0) for _ in range(5)] == [0] * 5
    assert measurement().status == "current"


def test_requests_of_another_shape_are_named_and_nothing_else_follows(live: Live) -> None:
    LanguageModel.objects.update(input_tokens=1000, output_tokens=120)
    for _ in range(35):
        live.minute(0.2)
    assert measurement().self_check["off_shape"] == "requests have 100 input tokens on average, measured with 1000"
    assert measurement().status == "current"
    assert [row[2:] for row in load_measurements(None).doubted] == [
        ("off_shape", "small: requests have 100 input tokens on average, measured with 1000.")
    ]


def test_while_redis_is_away_nothing_counts(live: Live) -> None:
    live.minute(2.0)
    live.store.latencies = lambda *_: None  # type: ignore[method-assign]
    assert live.look() == 0
    assert measurement().self_check == {}
