"""Removals on probation, in passes against a fleet in memory."""

from __future__ import annotations

from datetime import timedelta

import pytest

from capacity.domain.latency import Histogram
from capacity.domain.probation import read
from capacity.models import Action, BenchRun, Brake, Decision, LanguageModel, Pass, Replica, Slo
from capacity.ports import Latencies
from capacity.tests.fleet import Fleet

pytestmark = pytest.mark.django_db

WINDOW = 60


class Watched(Fleet):
    """Three ready replicas with an SLO of p95 TTFT ≤ 500 ms, one more than their load needs."""

    def __init__(self, **model):
        slo = Slo.objects.create(name="chat", ttft_percentile=95, ttft_ms=500)
        super().__init__(settings={"down_window_seconds": WINDOW}, slo=slo, min_replicas=1, **model)
        self.quick: dict[str, int] = {}
        self.slow: dict[str, int] = {}
        self.a_pass()
        self.serve(21)
        self.passes(2)
        assert len(self.names("ready")) == 3

    def serve(self, requests, *, quick=0, slow=0):
        """Shares the load, and counts so many more requests on each replica."""
        self.passes(1)
        self.share(requests)
        for name in self.names("ready", "draining"):
            self.quick[name] = self.quick.get(name, 0) + quick
            self.slow[name] = self.slow.get(name, 0) + slow
            quick_now, all_now = self.quick[name], self.quick[name] + self.slow[name]
            histogram = Histogram(bounds=(0.5, 1.0), counts=(quick_now, quick_now), count=all_now)
            self.loads.histograms[name] = Latencies(at=self.fake.now(), histograms={"ttft": histogram})

    def until_removed(self, requests=9):
        """The pass in which one is drained."""
        for _ in range(20):
            self.serve(requests, quick=5)
            if Action.objects.filter(op="drain").exists():
                return Action.objects.get(op="drain")
        raise AssertionError("nothing was taken back")

    @property
    def stored(self):
        return LanguageModel.objects.get(pk=self.model.pk)

    @property
    def watch(self):
        return read(self.stored.probation)

    @property
    def last(self):
        return self.stored.last_decision


def slow_down(fleet, passes=2, requests=9):
    for _ in range(passes):
        fleet.serve(requests, slow=20)
    fleet.passes(1)


def test_a_removal_is_watched_for_one_down_window_from_what_was_counted_then():
    fleet = Watched()
    drained = fleet.until_removed()
    watch = fleet.watch
    assert (watch.replica, watch.since, watch.floor) == (drained.replica_name, drained.created_at, 3)
    assert watch.until == drained.created_at + timedelta(seconds=WINDOW)
    assert set(watch.base) >= {drained.replica_name}
    assert watch.is_open


def test_where_the_slo_is_missed_the_replica_comes_back_and_removals_rest():
    fleet = Watched()
    drained = fleet.until_removed()
    slow_down(fleet)
    assert fleet.watch.result == "failed"
    assert fleet.stored.removals_rest_until == fleet.watch.decided_at + timedelta(hours=24)
    back = Action.objects.exclude(op="drain").filter(created_at__gt=drained.created_at)
    assert set(back.values_list("op", "reason")) <= {("undrain", "below_min"), ("start", "below_min")}
    assert back.exists()
    fleet.passes(2)
    assert len(fleet.names("ready")) == 3
    problem = next(row for row in Pass.objects.latest("id").problems if row["code"] == "removals_rest")
    assert problem["subject"] == "model:chat"
    assert "within 500 ms TTFT, target 95 %" in problem["detail"]
    assert "Removals rest until 2026-12-01" in problem["detail"]


def test_a_drain_that_still_runs_is_taken_back():
    fleet = Watched()
    drained = fleet.until_removed()
    fleet.fake.in_flight[drained.replica_name] = 2  # it drains until these are done
    for _ in range(2):
        fleet.passes(1)
        for name in fleet.names("ready", "draining"):
            slow = Histogram(bounds=(0.5, 1.0), counts=(0, 0), count=10_000)
            fleet.loads.histograms[name] = Latencies(at=fleet.fake.now(), histograms={"ttft": slow})
    fleet.passes(1)
    assert Action.objects.filter(op="undrain", replica_name=drained.replica_name, reason="below_min").exists()
    assert not Action.objects.filter(op="start", created_at__gt=drained.created_at).exists()


def test_while_removals_rest_nothing_is_taken_back_by_load_and_then_it_is():
    fleet = Watched()
    fleet.until_removed()
    slow_down(fleet)
    fleet.passes(12)
    assert len(fleet.names("ready")) == 3
    assert fleet.last.reason == "at_min"
    LanguageModel.objects.update(removals_rest_until=fleet.fake.now())
    for _ in range(8):
        fleet.serve(3, quick=5)
    assert len(fleet.names("ready")) < 3


def test_above_what_it_had_before_it_also_holds_while_removals_rest():
    fleet = Watched()
    fleet.until_removed()
    slow_down(fleet)
    fleet.serve(39, quick=1)
    fleet.passes(3)
    assert len(fleet.names("ready")) == 4
    for _ in range(8):
        fleet.serve(3, quick=1)
    assert (len(fleet.names("ready")), fleet.last.reason) == (4, "cooldown")


def test_a_maximum_that_was_lowered_meanwhile_holds():
    fleet = Watched()
    fleet.until_removed()
    slow_down(fleet)
    LanguageModel.objects.update(max_replicas=2)
    fleet.passes(4)
    assert len(fleet.names("ready")) == 2


def test_where_the_slo_is_met_nothing_happens():
    fleet = Watched()
    fleet.until_removed()
    for _ in range(6):
        fleet.serve(9, quick=20)
    assert (fleet.watch.result, fleet.stored.removals_rest_until) == ("held", None)
    assert len(fleet.names("ready")) == 2
    assert not any(row["code"] == "removals_rest" for row in Pass.objects.latest("id").problems)


def test_engines_without_latencies_give_no_verdict():
    fleet = Watched()
    fleet.until_removed()
    fleet.loads.histograms.clear()
    fleet.passes(6)
    assert fleet.watch.result == "unknown"
    assert fleet.stored.removals_rest_until is None


def test_latencies_that_cannot_be_read_end_without_a_verdict(monkeypatch):
    fleet = Watched()
    monkeypatch.setattr(fleet.loads, "latencies", lambda pool, replicas: None)
    fleet.until_removed()
    fleet.passes(6)
    assert fleet.watch.result == "unknown"


@pytest.mark.parametrize("mode", ["advise", "add_only"])
def test_a_removal_that_is_only_advice_is_not_watched(mode):
    fleet = Watched()
    LanguageModel.objects.update(mode=mode)
    for _ in range(10):
        fleet.serve(9, quick=5)
    assert fleet.last.outcome == "remove"
    assert fleet.watch is None


def test_what_goes_above_the_maximum_is_not_watched():
    fleet = Watched()
    LanguageModel.objects.update(max_replicas=2)
    fleet.passes(2)
    assert Action.objects.filter(op="drain", reason="above_max").exists()
    assert fleet.watch is None


def test_only_a_model_on_probation_has_its_latencies_read():
    fleet = Watched()
    asked = []
    fleet.loads.latencies = lambda pool, replicas: asked.append(set(replicas)) or {}
    fleet.passes(2)
    assert asked == []
    fleet.until_removed()
    assert len(asked) == 1
    fleet.passes(1)
    assert len(asked) == 2


def test_no_query_is_asked_for_a_watch_that_is_over():
    from capacity.tests.test_reconcile import queries_of_a_pass

    fleet = Watched()
    fleet.until_removed()
    slow_down(fleet)
    fleet.passes(3)
    # as of any quiet pass; two of them open and close the transaction
    assert queries_of_a_pass(fleet) <= 12 + 2


def test_a_stored_watch_that_is_none_breaks_no_pass():
    fleet = Watched()
    LanguageModel.objects.update(probation={"since": 5}, removals_rest_until=fleet.fake.now() + timedelta(hours=1))
    reports = fleet.passes(2)
    assert [report.outcome for report in reports] == ["done", "done"]
    assert any(row["code"] == "removals_rest" for row in Pass.objects.latest("id").problems)
    assert Decision.objects.exists()


def test_a_removal_that_the_brake_withholds_is_watched_only_once_it_is_done():
    fleet = Watched()
    Brake.objects.update(is_on=True)
    for _ in range(10):
        fleet.serve(9, quick=5)
    assert Action.objects.filter(op="drain", state="withheld").exists()
    assert fleet.watch is None
    Brake.objects.update(is_on=False)
    for _ in range(2):
        fleet.serve(9, quick=5)
    assert fleet.watch.is_open


def test_a_sweep_on_another_replica_takes_no_removal_back():
    fleet = Watched()
    fleet.until_removed()
    tested = Replica.objects.get(name=fleet.names("ready")[0])
    run = BenchRun.objects.create(profile=fleet.profile, replica=tested, state="testing", started_at=fleet.fake.now())

    for _ in range(2):
        BenchRun.objects.filter(pk=run.pk).update(heartbeat_at=fleet.fake.now() + timedelta(seconds=15))
        fleet.slow[tested.name] = fleet.slow.get(tested.name, 0) + 3000
        fleet.serve(9, quick=5)
    BenchRun.objects.filter(pk=run.pk).update(state="done", ended_at=fleet.fake.now())
    for _ in range(6):
        fleet.serve(9, quick=5)
    assert fleet.watch.result == "held"
    assert fleet.stored.removals_rest_until is None
