"""Engines that were running before us, through whole passes: counted, never ordered about."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from capacity import services
from capacity.api.endpoints import endpoints_document
from capacity.models import Action, Brake, LanguageModel, Node, Pass, Profile, Replica
from capacity.ports import Answer, Order, Sample
from capacity.tests.factories import make_measurement, make_node, make_profile, make_scope
from capacity.tests.fleet import START, Fleet
from quotas.models import CapacityQuota

pytestmark = pytest.mark.django_db


class Watched(Fleet):
    """A fleet that remembers every order, with registered engines that answer as long as nobody says otherwise."""

    def __init__(self, **fields) -> None:
        super().__init__(**fields)
        self.orders: list[Order] = []
        self.silent: set[str] = set()
        do = self.fake.apply

        def remember(order):
            self.orders.append(order)
            return do(order)

        self.fake.apply = remember
        read = self.loads.loads
        self.loads.loads = lambda pool: (
            read(pool)
            | {
                name: Sample(in_flight=self.fake.in_flight.get(name, 0), sampled_at=self.fake.now())
                for name in self.answers.found
            }
        )

    def register(self, name: str = "own", **fields) -> Replica:
        values = {"pool": self.pool, "model": self.model, "profile": self.profile, "nodes": ["n1"], "state": "ready"}
        row = Replica.objects.create(
            **{**values, "url": f"http://10.0.0.7/{name}", **fields}, name=name, since=START, is_registered=True, seen_at=START
        )
        self.answers.found[name] = Answer(answered_at=START)
        return row

    def passes(self, count, seconds=15):
        reports = []
        for _ in range(count):
            self.fake.advance(seconds)
            for name in self.answers.found.keys() - self.silent:
                self.answers.found[name] = Answer(answered_at=self.fake.now())
            reports.append(self.a_pass())
        return reports

    def fall_silent(self, name: str) -> None:
        self.silent.add(name)
        self.answers.found[name] = replace(self.answers.found[name], failed_since=self.fake.now())

    def ordered_about(self) -> set[str]:
        return {order.replica for order in self.orders}


def state(name: str = "own") -> str:
    return Replica.objects.get(name=name).state


def problems(code: str) -> str:
    """What the newest pass says under that code."""
    return "; ".join(p["detail"] for p in Pass.objects.latest("at").problems if p["code"] == code)


def reason(fleet: Fleet) -> str:
    return LanguageModel.objects.get(pk=fleet.model.pk).last_decision.reason


def test_it_counts_for_the_floor_and_for_capacity_and_holds_its_room():
    fleet = Watched(min_replicas=1, units=2)
    fleet.register()
    fleet.passes(2)
    assert fleet.orders == []
    fleet.fake.in_flight["own"] = 35
    fleet.passes(1)
    assert len(fleet.names("starting")) == 1  # the second of the two units; the first is its own
    fleet.passes(2)
    assert reason(fleet) == "no_room"


def test_it_counts_against_quotas():
    scope = make_scope("acme")
    fleet = Watched(min_replicas=3, scope=scope)
    CapacityQuota.objects.create(scope=scope, pool=fleet.pool, target="sim", limit=2)
    fleet.register()
    fleet.passes(1)
    assert len(fleet.names("starting")) == 1


def test_it_is_routed_to_while_it_is_ready():
    fleet = Watched(min_replicas=1)
    fleet.register()
    fleet.passes(1)
    (found,) = endpoints_document(LanguageModel.objects.all())["endpoints"]
    assert (found["replica"], found["url"], found["weight"]) == ("own", "http://10.0.0.7/own", 10)
    fleet.fall_silent("own")
    fleet.passes(4)
    assert endpoints_document(LanguageModel.objects.all())["endpoints"] == []


def test_one_that_stops_answering_is_unready_and_replaced_and_never_ended():
    fleet = Watched(min_replicas=1, settings={"start_timeout_seconds": 60, "down_window_seconds": 30})
    fleet.register()
    fleet.passes(2)
    fleet.fall_silent("own")
    fleet.passes(2)
    assert state() == "ready"
    fleet.passes(2)
    assert state() == "unready"
    assert "has not answered since 2026-11-30 12:00:30 UTC" in problems("engine_silent")
    fleet.passes(40)
    assert len(fleet.names("ready")) == 1
    assert "own" not in fleet.ordered_about() and not Action.objects.filter(replica_name="own").exists()
    fleet.silent.clear()
    fleet.passes(1)
    assert state() == "ready" and not problems("engine_silent")
    fleet.passes(8)
    assert (state(), fleet.names("ready")) == ("ready", [])  # ours was the surplus
    assert "own" not in fleet.ordered_about()


@pytest.mark.parametrize("what", ["max", "retire", "cordon", "limit", "idle", "off"])
def test_nothing_that_ends_ours_ends_it(what):
    scope = make_scope("acme")
    fleet = Watched(min_replicas=0, scale_to_zero=True, scope=scope, settings={"down_window_seconds": 30, "idle_seconds": 130})
    fleet.register("own-1")
    fleet.register("own-2")
    if what == "max":
        LanguageModel.objects.update(max_replicas=1)
    elif what == "off":
        LanguageModel.objects.update(max_replicas=0)
    elif what == "retire":
        Profile.objects.update(state="retire")
        make_measurement(make_profile(fleet.model, "new", template="simulator"))
    elif what == "cordon":
        Node.objects.update(schedulable=False)
        make_node("n2", pool=fleet.pool)
        fleet.fake.add_node("n2", "p", {"sim": 8})
    elif what == "limit":
        CapacityQuota.objects.create(scope=scope, pool=fleet.pool, target="sim", limit=1)
    fleet.passes(60)
    assert {state("own-1"), state("own-2")} == {"ready"}
    assert not fleet.ordered_about() & {"own-1", "own-2"}


@pytest.mark.parametrize("intent", ["drain", "cancel", "start", "undrain"])
def test_no_order_goes_out_for_it_whatever_a_restore_left_in_its_row(intent):
    fleet = Watched(min_replicas=1)
    fleet.register(intent=intent, intent_at=START, state="draining", removable=True)
    fleet.passes(3)
    assert fleet.orders == []
    assert (state(), Replica.objects.get(name="own").intent) == ("ready", "")


def test_a_silent_host_leaves_it_as_it_was_and_its_load_unknown():
    fleet = Watched(min_replicas=1)
    fleet.register()
    fleet.passes(1)
    fleet.fake.silence("n1")
    fleet.fall_silent("own")
    fleet.passes(6)
    assert state() == "ready"
    assert reason(fleet) == "metrics_unknown"


def test_on_a_lost_host_it_is_left_out_and_is_there_again_when_the_host_is():
    fleet = Watched(min_replicas=1)
    fleet.register()
    make_node("n2", pool=fleet.pool)
    fleet.fake.add_node("n2", "p", {"sim": 8})
    fleet.passes(1)
    fleet.fake.silence("n1")
    fleet.passes(22)
    assert Replica.objects.exclude(name="own").get().nodes == ["n2"]
    assert Replica.objects.get(name="own").gone_at is None
    fleet.fake.silence("n1", False)
    fleet.passes(8)
    assert (state(), fleet.names("ready")) == ("ready", [])
    assert "own" not in fleet.ordered_about()


def test_it_may_be_on_a_node_that_a_person_typed_in():
    fleet = Watched(min_replicas=1)
    make_node("typed", pool=fleet.pool, resources={"sim": 1})
    fleet.register(nodes=["typed"])
    fleet.passes(2)
    assert (state(), fleet.orders) == ("ready", [])


def test_the_units_that_its_host_calls_foreign_are_counted_once():
    fleet = Watched(min_replicas=1, units=2)
    fleet.register()
    host = fleet.fake._nodes["n1"]
    host.report = replace(host.report, resources={"sim": 1}, foreign={"sim": 2})  # three in all: its own, somebody's, one free
    fleet.fake.in_flight["own"] = 40
    fleet.passes(1)
    assert len(fleet.names("starting")) == 1
    node = Node.objects.get(name="n1")
    assert (node.resources, node.foreign) == ({"sim": 2}, {"sim": 1})


def test_an_address_where_one_of_ours_runs_is_not_counted_twice():
    fleet = Watched(min_replicas=1)
    fleet.passes(2)
    (ours,) = fleet.names("ready")
    fleet.register(url=Replica.objects.get(name=ours).url)
    fleet.passes(1)
    (problem,) = [p for p in Pass.objects.latest("at").problems if p["subject"] == "replica:own"]
    assert "forget it" in problem["detail"]
    assert [row["replica"] for row in endpoints_document(LanguageModel.objects.all())["endpoints"]] == [ours]


def test_answers_that_cannot_be_read_change_nothing():
    fleet = Watched(min_replicas=1)
    fleet.register()
    fleet.passes(1)
    fleet.answers.answers = lambda pool: None
    fleet.fake.advance(3600)
    fleet.a_pass()
    assert state() == "ready"


def test_who_forgets_it_while_a_pass_is_made_has_the_last_word(monkeypatch):
    from capacity import reconcile

    fleet = Watched(min_replicas=0)
    fleet.register(state="unready")
    decide = reconcile.plan

    def meanwhile(*args):
        Replica.objects.filter(name="own").update(state="gone", gone_at=START + timedelta(seconds=1))
        return decide(*args)

    monkeypatch.setattr(reconcile, "plan", meanwhile)
    fleet.passes(1)
    assert state() == "gone"


def test_the_brake_pulled_and_released_asks_nothing_of_it():
    fleet = Watched(min_replicas=0, max_replicas=1, settings={"down_window_seconds": 30})
    fleet.register("own-1")
    fleet.register("own-2")
    services.brake_pull(fleet.pool, actor=None, reason="to look", until=None, now=START)
    fleet.passes(4)
    withheld = Brake.objects.get(pool=fleet.pool).withheld
    assert withheld == []
    Brake.objects.update(is_on=False)
    fleet.passes(8)
    assert fleet.orders == [] and {state("own-1"), state("own-2")} == {"ready"}


def test_taking_a_pool_over_leaves_it_as_it_is():
    fleet = Watched(min_replicas=1)
    fleet.passes(1)  # the pool is of the first installation from then on
    fleet.register(intent="drain", intent_at=START)
    found = services.take_over_preview(fleet.lease, fleet.fake.observe("p"), "another")
    assert found.missing == 0
    services.take_over(fleet.lease, fleet.fake, installation="another", actor=None, reason="moved", now=fleet.fake.now())
    fleet.deps = fleet.make_deps(installation="another")
    fleet.passes(3)
    assert state() == "ready" and "own" not in fleet.ordered_about()
