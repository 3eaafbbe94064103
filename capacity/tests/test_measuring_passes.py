"""A sweep's replica over passes: started for it, held while its worker is heard, and given back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from capacity.api.endpoints import endpoints_document
from capacity.braking import witnesses
from capacity.models import Action, BenchRun, LanguageModel, Replica, Sample
from capacity.observation.model_loads import in_service
from capacity.ports import Sample as Reading
from capacity.rows import load
from capacity.samples import STATES, count_tested, unpack
from capacity.snapshot import build
from capacity.tests.fleet import Fleet
from capacity.tests.test_probation_passes import Watched

pytestmark = pytest.mark.django_db


def run_on(fleet: Fleet, replica: str = "", **fields: Any) -> BenchRun:
    row = Replica.objects.get(name=replica) if replica else None
    return BenchRun.objects.create(
        **{
            "profile": fleet.profile,
            "replica": row,
            "state": "testing",
            "heartbeat_at": fleet.fake.now(),
            **fields,
        }
    )


def heard(fleet: Fleet, run: BenchRun) -> None:
    BenchRun.objects.filter(pk=run.pk).update(heartbeat_at=fleet.fake.now() + timedelta(seconds=15))


def offered(fleet: Fleet) -> set[str]:
    return {row["replica"] for row in endpoints_document(LanguageModel.objects.all(), fleet.fake.now())["endpoints"]}


def fleet_of(count: int, **more: Any) -> Fleet:
    fleet = Fleet(min_replicas=count, **more)
    fleet.passes(2)
    return fleet


def test_one_under_test_is_replaced_in_service_and_never_taken_back_until_its_worker_falls_silent() -> None:
    fleet = fleet_of(1)
    (name,) = fleet.names("ready")
    run = run_on(fleet, name)
    assert offered(fleet) == set()
    for _ in range(3):
        heard(fleet, run)
        fleet.passes(1)
    assert len(fleet.names("ready")) == 2 and name not in offered(fleet)
    assert not Action.objects.filter(replica_name=name, op="drain").exists()
    fleet.passes(5)  # nobody is heard: the run holds nothing any more
    assert len(offered(fleet)) == 1
    assert Action.objects.filter(op="drain").exists()


def test_what_a_sweep_makes_is_in_no_figure_of_the_model() -> None:
    fleet = fleet_of(2)
    tested, served = fleet.names("ready")
    run = run_on(fleet, tested)
    fleet.fake.in_flight |= {tested: 400, served: 3}
    for _ in range(2):
        heard(fleet, run)
        fleet.passes(1)
    found = Sample.objects.latest("at")
    records = {row["replica"]: row for row in unpack(bytes(found.replicas))}
    record = records[Replica.objects.get(name=tested).pk]
    assert (STATES[record["state"]], record["in_flight"]) == ("under_test", -1)
    assert (found.demand_low, found.demand_high) == (3, 3)
    assert count_tested(bytes(found.replicas)) == 1
    assert found.ready + found.starting == 2


def test_tokens_of_a_replica_under_test_are_no_rate_of_its_model() -> None:
    fleet = fleet_of(1)
    (name,) = fleet.names("ready")
    rows = load(fleet.pool.pk, fleet.pool.settings, fleet.fake.now())
    counted = {name: Reading(in_flight=1, sampled_at=fleet.fake.now(), output_tokens_total=5)}
    assert in_service(counted, rows) == counted
    run_on(fleet, name)
    assert in_service(counted, load(fleet.pool.pk, fleet.pool.settings, fleet.fake.now())) == {}


@pytest.mark.parametrize("mode", ["auto", "advise", "paused"])
def test_a_replica_of_its_own_is_started_and_told_to_the_run(mode: str) -> None:
    fleet = fleet_of(0, mode=mode)
    run = run_on(fleet, state="waiting", own_replica=True)
    fleet.passes(1)
    run.refresh_from_db()
    assert run.replica is not None and run.replica.state == "starting"
    for _ in range(2):
        heard(fleet, run)
        fleet.passes(1)
    assert fleet.names("ready") == [run.replica.name]
    assert offered(fleet) == set()
    assert Action.objects.get(op="start").reason == "measure"


def test_one_of_a_model_that_does_not_act_is_drained_when_its_sweep_is_over() -> None:
    fleet = fleet_of(0, mode="advise")
    run = run_on(fleet, state="waiting", own_replica=True)
    fleet.a_pass()
    fleet.passes(1)
    BenchRun.objects.filter(pk=run.pk).update(state="done", give_back=True)
    fleet.passes(3)
    assert fleet.names("ready", "draining") == []
    assert Replica.objects.get().drain_reason == "measure"


def test_a_run_without_room_is_told_why_and_nothing_is_started() -> None:
    fleet = fleet_of(2, units=2)
    run = run_on(fleet, state="waiting", own_replica=True)
    fleet.passes(1)
    run.refresh_from_db()
    assert run.replica is None
    assert "no node has the room" in run.message


def test_a_run_that_is_stopped_or_unheard_asks_for_nothing() -> None:
    fleet = fleet_of(0, mode="advise")
    run_on(fleet, state="waiting", own_replica=True, heartbeat_at=fleet.fake.now() - timedelta(minutes=2))
    fleet.passes(2)
    assert not Replica.objects.exists()


def test_on_a_copy_of_the_database_nothing_is_started_for_a_sweep() -> None:
    fleet = fleet_of(0, mode="advise")
    run_on(fleet, state="waiting", own_replica=True)
    fleet.fake.advance(15)
    fleet.a_pass(fleet.make_deps(installation="elsewhere"))
    assert not Replica.objects.exists()


def test_one_that_a_sweep_makes_unready_is_no_sign_of_a_broken_probe() -> None:
    fleet = fleet_of(2)
    name = fleet.names("ready")[0]
    run = run_on(fleet, name)
    built = build(fleet.deps, fleet.lease, fleet.fake.now(), fleet.fake.now())
    assert len(list(witnesses(built))) == 1
    BenchRun.objects.filter(pk=run.pk).update(state="done")
    built = build(fleet.deps, fleet.lease, fleet.fake.now(), fleet.fake.now())
    assert len(list(witnesses(built))) == 2


def test_what_a_sweep_slows_down_says_nothing_of_a_removal() -> None:
    fleet = Watched()
    fleet.until_removed()
    name = fleet.names("ready")[0]
    run_on(fleet, name, heartbeat_at=fleet.fake.now() + timedelta(seconds=15))
    asked: list[set[str]] = []
    fleet.loads.latencies = lambda pool, replicas: asked.append(set(replicas)) or {}  # type: ignore[method-assign,func-returns-value]
    fleet.passes(1)
    assert asked and not any(name in names for names in asked)
