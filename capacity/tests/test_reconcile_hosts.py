"""Hosts that fall silent, are lost, come back and flap; clocks that are set: through whole passes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from capacity import services
from capacity.models import LanguageModel, Node, Pass, PoolSettings, Replica
from capacity.reconcile import run_pass
from capacity.tests.factories import make_node
from capacity.tests.fleet import Fleet

pytestmark = pytest.mark.django_db


class TwoHosts(Fleet):
    """A second host `n2`; every order is remembered with what its host was when it was given."""

    def __init__(self, **fields) -> None:
        super().__init__(**fields)
        make_node("n2", pool=self.pool)
        self.fake.add_node("n2", "p", {"sim": 8})
        self.to_silent: list[object] = []
        do = self.fake.apply

        def remember(order):
            if any(self.fake._nodes[name].silent and self.is_known_silent(name) for name in order.nodes):
                self.to_silent.append(order)
            return do(order)

        self.fake.apply = remember

    def is_known_silent(self, node: str) -> bool:
        """Whether the pass could know: its last report is as old as a silence."""
        report = self.fake._nodes[node].report
        return self.fake.now() - report.at >= timedelta(seconds=30)


def on(node: str) -> list[str]:
    return [row.name for row in Replica.objects.filter(gone_at__isnull=True) if row.nodes == [node]]


def reason() -> str:
    return LanguageModel.objects.get(name="chat").last_decision.reason


def codes() -> set[str]:
    return {p["code"] for p in Pass.objects.latest("at").problems if p["subject"].startswith("node:")}


def test_a_silent_host_takes_nothing_keeps_what_it_has_and_nothing_is_ended_there():
    fleet = TwoHosts(min_replicas=1, max_replicas=1)
    fleet.a_pass()
    fleet.passes(2)
    (name,) = fleet.names("ready")
    (host,) = Replica.objects.get(name=name).nodes
    fleet.fake.silence(host)
    LanguageModel.objects.update(max_replicas=0, min_replicas=0)  # above its maximum, for what it matters
    fleet.passes(10)
    assert codes() == {"node_silent"}
    assert (Replica.objects.get(name=name).state, reason()) == ("ready", "metrics_unknown")
    LanguageModel.objects.update(max_replicas=4, min_replicas=3)
    fleet.passes(2)
    assert {row.nodes[0] for row in Replica.objects.exclude(name=name)} == {"n1", "n2"} - {host}
    assert fleet.to_silent == []


@pytest.mark.parametrize("state", ["starting", "unready"])
def test_what_is_stuck_on_a_silent_host_is_ended_only_when_the_host_is_back(state):
    fleet = TwoHosts(min_replicas=1, settings={"start_timeout_seconds": 100, "node_lost_seconds": 1000})
    fleet.fake._start_seconds = 5 if state == "unready" else 10_000
    fleet.a_pass()
    fleet.passes(1)
    row = Replica.objects.get()
    if state == "unready":
        fleet.fake.hang(row.name)
        fleet.passes(1)
    fleet.fake.silence(row.nodes[0])
    fleet.passes(10)
    row.refresh_from_db()
    assert (row.state, row.intent, fleet.to_silent) == (state, "", [])
    fleet.fake.silence(row.nodes[0], False)
    fleet.passes(2)
    row.refresh_from_db()
    assert row.drain_reason == "start_timeout"


def test_a_lost_host_is_replaced_and_its_return_at_the_maximum_takes_one_back():
    fleet = TwoHosts(min_replicas=2, max_replicas=2)
    fleet.a_pass()
    fleet.passes(2)
    LanguageModel.objects.update(min_replicas=2)
    (host,) = {node for row in Replica.objects.all() for node in row.nodes}
    other = ({"n1", "n2"} - {host}).pop()
    fleet.fake.silence(host)
    fleet.passes(24)
    assert codes() == {"node_lost"}
    assert (len(on(host)), len(on(other))) == (2, 2)
    fleet.fake.silence(host, False)
    fleet.fake.advance(5)
    fleet.a_pass()
    assert len(fleet.names("ready", "draining")) == 4  # adopted, and one begins to go
    fleet.passes(8)
    assert len(fleet.names("ready")) == 2
    assert fleet.to_silent == []


def test_a_host_that_flaps_within_its_patience_changes_nothing():
    fleet = TwoHosts(min_replicas=2)
    fleet.a_pass()
    fleet.passes(2)
    before = sorted(Replica.objects.values_list("name", flat=True))
    (host,) = {node for row in Replica.objects.all() for node in row.nodes}
    for _ in range(6):
        fleet.fake.silence(host)
        fleet.passes(6)
        fleet.fake.silence(host, False)
        fleet.passes(2)
    assert sorted(Replica.objects.values_list("name", flat=True)) == before
    assert fleet.to_silent == []


def test_an_engine_that_ended_while_its_host_was_lost_is_gone_and_replaced_once():
    fleet = TwoHosts(min_replicas=1)
    fleet.a_pass()
    fleet.passes(2)
    (name,) = fleet.names("ready")
    (host,) = Replica.objects.get(name=name).nodes
    fleet.fake.silence(host)
    fleet.fake.kill(name)
    fleet.passes(24)
    fleet.fake.silence(host, False)
    fleet.passes(3)
    assert Replica.objects.get(name=name).state == "gone"
    assert len(fleet.names("ready", "starting")) == 1


@pytest.mark.parametrize("hours", [1, -1])
def test_our_own_clock_that_is_set_makes_no_host_lost_and_starts_and_ends_nothing(hours):
    fleet = TwoHosts(min_replicas=2)
    fleet.a_pass()
    fleet.passes(2)
    before = sorted(Replica.objects.values_list("name", "state"))
    for number in range(12):
        fleet.fake.advance(15)
        run_pass(fleet.deps, fleet.lease, fleet.fake.now() + timedelta(hours=hours))
        found = Pass.objects.order_by("-pk").first().problems
        assert "node_lost" not in {p["code"] for p in found}, number
    assert sorted(Replica.objects.values_list("name", "state")) == before


def test_a_lost_host_is_deleted_with_what_ran_there_and_is_adopted_should_it_return():
    fleet = TwoHosts(min_replicas=1)
    fleet.a_pass()
    fleet.passes(2)
    (name,) = fleet.names("ready")
    node = Node.objects.get(name=Replica.objects.get(name=name).nodes[0])
    with pytest.raises(ValidationError, match="wait until they have moved"):
        Node.objects.filter(pk=node.pk).update(reported_at=timezone.now())
        services.delete(Node.objects.get(pk=node.pk), actor=None)
    Node.objects.filter(pk=node.pk).update(reported_at=timezone.now() - timedelta(seconds=301), host_clock_at=None)
    services.delete(Node.objects.get(pk=node.pk), actor=None, reason="burnt down")
    assert Replica.objects.get(name=name).message == f"{node.name}, its host, was lost and is deleted"
    fleet.passes(1)
    assert Replica.objects.get(name=name).state == "ready"
    assert Node.objects.filter(name=node.name).exists()


def test_while_nobody_listened_no_host_is_lost():
    """The control plane was away for an hour and then listens to a host that is silent: it may well have run all the time."""
    fleet = TwoHosts(min_replicas=1, max_replicas=1)
    fleet.a_pass()
    fleet.passes(2)
    (host,) = Replica.objects.get().nodes
    fleet.fake.silence(host)
    fleet.fake.advance(3600)
    fleet.passes(19)
    assert (codes(), len(fleet.names("starting", "ready"))) == ({"node_silent"}, 1)
    fleet.passes(2)
    assert (codes(), len(fleet.names("starting", "ready"))) == ({"node_lost"}, 2)


def test_while_reports_cannot_be_read_no_host_is_lost():
    fleet = TwoHosts(min_replicas=1, max_replicas=1)
    fleet.a_pass()
    fleet.passes(2)
    (host,) = Replica.objects.get().nodes
    fleet.fake.silence(host)
    fleet.fake.away = True
    fleet.passes(40)
    fleet.fake.away = False
    fleet.passes(19)
    assert (codes(), len(fleet.names("starting", "ready"))) == ({"node_silent"}, 1)
    fleet.passes(3)
    assert codes() == {"node_lost"}


SECONDS = [field.name for field in PoolSettings._meta.get_fields() if field.name.endswith("_seconds")]


@pytest.mark.parametrize("seconds", [1, 10**12 - 1])
@pytest.mark.parametrize("field", SECONDS)
def test_no_time_that_a_form_takes_ends_a_pass_that_moves_replicas_away(field, seconds):
    fleet = TwoHosts(min_replicas=2)
    fleet.a_pass()
    fleet.passes(2)
    # those that bound each other leave room for any value
    around = {"node_silent_seconds": 0, "node_lost_seconds": 10**12, "wake_seconds": 0, "idle_seconds": 10**12}
    PoolSettings.objects.filter(pool=fleet.pool).update(**{**(around if field in around else {}), field: seconds})
    for host in ("n1", "n2", "n1"):
        Node.objects.update(schedulable=True)
        Node.objects.filter(name=host).update(schedulable=False)
        assert [report.outcome for report in fleet.passes(4)] == ["done"] * 4


def test_a_host_that_was_only_typed_in_takes_no_start_until_it_reports():
    fleet = Fleet(units=1, min_replicas=2)
    make_node("typed", pool=fleet.pool, resources={"sim": 8})
    fleet.a_pass()
    fleet.passes(2)
    assert (len(fleet.names("ready")), reason()) == (1, "no_room")
    fleet.fake.add_node("typed", "p", {"sim": 8})
    fleet.passes(2)
    assert len(fleet.names("ready", "starting")) == 2
