"""What a pass does when hosts, stores, engines or its own worker fail."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError

from capacity import reconcile
from capacity.models import Action, Backoff, Decision, LanguageModel, Lease, Node, Pass, Replica, Sample
from capacity.ports import NodeReport
from capacity.recording import record
from capacity.tests.fleet import START, Fleet

pytestmark = pytest.mark.django_db


def decision(fleet: Fleet) -> Decision:
    return LanguageModel.objects.get(pk=fleet.model.pk).last_decision


def test_a_killed_replica_is_seen_and_replaced_within_two_passes():
    fleet = Fleet(min_replicas=1)
    fleet.a_pass()
    fleet.passes(1)
    (victim,) = fleet.names("ready")
    fleet.fake.kill(victim)
    fleet.passes(2)
    assert Replica.objects.get(name=victim).state == "gone"
    assert len(fleet.names("ready", "starting")) == 1


def test_a_worker_killed_between_record_and_act_loses_nothing_and_does_nothing_twice(monkeypatch):
    fleet = Fleet(min_replicas=2)

    class Killed(BaseException):
        pass

    def die(*args):
        raise Killed

    monkeypatch.setattr(reconcile, "act", die)
    monkeypatch.setattr(reconcile.leases, "release", lambda *args: None)  # a killed process gives nothing back
    with pytest.raises(Killed):
        fleet.a_pass()
    assert fleet.names("starting", "ready") == []
    monkeypatch.undo()
    assert set(Action.objects.values_list("state", flat=True)) == {"pending"}
    other = fleet.make_deps(holder="worker-2")
    fleet.fake.advance(10)
    assert fleet.a_pass(other).outcome == "held"
    fleet.fake.advance(30)
    fleet.a_pass(other)
    assert len(fleet.names("starting", "ready")) == 2
    fleet.passes(3)
    assert len(fleet.names("ready")) == 2
    assert set(Action.objects.values_list("state", flat=True)) == {"done"}


def test_one_pass_at_a_time():
    fleet = Fleet()
    stale = fleet.lease
    assert fleet.a_pass().outcome == "done"
    # a second worker that read the lease before the first one took it
    assert reconcile.run_pass(fleet.make_deps(holder="worker-2"), stale, fleet.fake.now()).outcome == "held"
    Lease.objects.update(holder="worker-3", until=fleet.fake.now() + timedelta(seconds=20))
    assert fleet.a_pass().outcome == "held"


def test_a_holder_that_was_killed_blocks_no_pool_while_a_clock_that_was_set_back_catches_up():
    fleet = Fleet()
    fleet.a_pass()
    fleet.fake.advance(15)
    Lease.objects.update(holder="killed", until=fleet.fake.now() + timedelta(hours=1, seconds=30))
    assert fleet.a_pass().outcome == "done"


def test_a_late_writer_writes_nothing_and_does_nothing(monkeypatch):
    fleet = Fleet(min_replicas=1)
    decide = reconcile.plan

    def slow(*args):
        Lease.objects.update(generation=99, holder="worker-2")
        return decide(*args)

    monkeypatch.setattr(reconcile, "plan", slow)
    assert fleet.a_pass().outcome == "lease_lost"
    assert not Decision.objects.exists()
    assert not Replica.objects.exists()
    assert fleet.names("starting") == []


def test_a_task_that_was_lost_is_asked_for_again(monkeypatch):
    fleet = Fleet(min_replicas=1)
    fleet.fake.silence("n1")
    fleet.a_pass()  # the host takes nothing in now, and reports nothing
    assert fleet.names("starting") == []
    monkeypatch.setattr(fleet.fake._nodes["n1"], "queue", [])
    fleet.fake.silence("n1", False)
    fleet.passes(2)
    assert len(fleet.names("starting", "ready")) == 1
    assert Replica.objects.count() == 1


def test_a_store_of_reports_that_is_away_holds_everything_and_leaves_a_gap():
    fleet = Fleet(min_replicas=1)
    fleet.a_pass()
    fleet.passes(2)
    samples = Sample.objects.count()
    fleet.fake.away = True
    fleet.passes(1)
    assert decision(fleet).reason == "inventory_unknown"
    assert Sample.objects.count() == samples
    fleet.fake.away = False
    fleet.passes(1)
    assert len(fleet.names("ready")) == 1


def test_gateways_that_cannot_be_read_stop_removals():
    fleet = Fleet(min_replicas=1)
    fleet.a_pass()
    fleet.passes(1)
    fleet.share(21)
    fleet.passes(2)
    fleet.share(0)
    fleet.pushes.away = True
    fleet.passes(5)
    assert decision(fleet).reason == "metrics_unknown"
    assert len(fleet.names("ready")) == 3


def test_an_engine_that_exits_at_once_makes_its_node_rest_and_says_its_last_words():
    fleet = Fleet(min_replicas=1)
    fleet.fake.broken["chat"] = "out of memory"
    fleet.a_pass()
    fleet.passes(2)
    backoff = Backoff.objects.get()
    assert (backoff.failures, "out of memory" in backoff.message) == (1, True)
    assert decision(fleet).reason == "no_room"
    failed = Action.objects.get(op="start")
    assert (failed.state, "out of memory" in failed.message) == ("failed", True)
    fleet.fake.broken.clear()
    fleet.passes(5)
    assert len(fleet.names("ready", "starting")) == 1


def test_the_rest_after_failures_doubles_up_to_half_an_hour_and_ten_ready_minutes_clear_it():
    from capacity.domain.backoff import rest

    assert [rest(n).total_seconds() / 60 for n in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
    fleet = Fleet(min_replicas=1)
    fleet.a_pass()
    fleet.passes(1)
    Backoff.objects.create(profile=fleet.profile, node=Node.objects.get(), until=START, failures=3)
    fleet.passes(39)
    assert Backoff.objects.exists()
    fleet.passes(2)
    assert not Backoff.objects.exists()


def test_a_third_exit_within_ten_minutes_rests_the_node():
    fleet = Fleet(min_replicas=1)
    fleet.a_pass()
    for kills in range(3):
        fleet.passes(3)
        (name,) = fleet.names("ready")
        fleet.fake.kill(name)
        fleet.passes(1)
        assert Backoff.objects.filter(until__gt=fleet.fake.now()).exists() == (kills == 2)


def test_a_silent_host_kills_nothing_and_a_lost_one_is_replaced():
    fleet = Fleet(min_replicas=1)
    fleet.a_pass()
    fleet.passes(1)
    (name,) = fleet.names("ready")
    Node.objects.create(name="n2", pool=fleet.pool, resources={"sim": 8})
    fleet.fake.add_node("n2", "p", {"sim": 8})
    fleet.fake.silence("n1")
    fleet.passes(3)
    assert Pass.objects.latest("at").problems[0]["code"] == "node_silent"
    assert Replica.objects.count() == 1
    assert Replica.objects.get().state == "ready"
    fleet.passes(18)
    assert Replica.objects.exclude(name=name).get().nodes == ["n2"]
    lost = Replica.objects.get(name=name)
    assert (lost.state, lost.gone_at) == ("unready", None)  # no gateway is sent there any more
    fleet.fake.silence("n1", False)
    fleet.fake.advance(5)
    fleet.a_pass()
    assert len(fleet.names("ready")) == 2  # adopted; the surplus goes by the usual rule
    lost.refresh_from_db()
    assert lost.state == "ready"
    fleet.passes(6)
    assert len(fleet.names("ready")) == 1


def test_what_runs_without_a_row_is_adopted():
    fleet = Fleet(min_replicas=1)
    fleet.a_pass()
    fleet.passes(1)
    Replica.objects.all().delete()
    fleet.passes(1)
    assert Replica.objects.get().state == "ready"
    assert len(fleet.names("ready")) == 1


def test_quotas_that_were_never_read_stop_adds_and_nothing_else():
    from quotas.domain.last_good import LastGood

    def broken(_held):
        raise DatabaseError("gone")

    fleet = Fleet(min_replicas=1)
    fleet.a_pass(fleet.make_deps(policies=LastGood(broken)))
    assert decision(fleet).reason == "policy_unavailable"
    fleet.passes(1)
    assert len(fleet.names("starting")) == 1


def test_crossed_bounds_in_the_database_are_named_and_hurt_no_other_model(monkeypatch):
    from django.db import connection

    from capacity.tests.factories import make_measurement, make_model, make_profile

    fleet = Fleet(min_replicas=1)
    other = make_model("other", pool=fleet.pool)
    make_measurement(make_profile(other, "small"))
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = 1")
        else:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("ALTER TABLE capacity_languagemodel DROP CONSTRAINT model_max_covers_min")
        cursor.execute("UPDATE capacity_languagemodel SET max_replicas = 0 WHERE name = 'chat'")
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = 0")
    fleet.a_pass()
    assert decision(fleet).reason == "bounds_conflict"
    assert Replica.objects.get().model == other
    assert {"code": "invalid_row", "subject": "model:chat"}.items() <= Pass.objects.get().problems[0].items()


def test_passes_that_were_missed_start_the_window_anew():
    fleet = Fleet(min_replicas=1, settings={"down_window_seconds": 60})
    fleet.a_pass()
    fleet.passes(1)
    fleet.share(21)
    fleet.passes(8)
    fleet.share(0)
    fleet.fake.advance(3600)
    fleet.a_pass()
    assert decision(fleet).reason == "cooldown"


def test_the_database_gone_ends_the_pass_with_a_sentence_and_no_exception(monkeypatch):
    fleet = Fleet(min_replicas=1)

    def gone(*args, **kwargs):
        raise DatabaseError("connection refused")

    monkeypatch.setattr(record, "write_decisions", gone)
    report = fleet.a_pass()
    assert (report.outcome, report.error) == ("failed", "DatabaseError: connection refused")
    assert fleet.names("starting") == []
    monkeypatch.undo()
    fleet.fake.advance(15)
    assert fleet.a_pass().outcome == "done"


@pytest.mark.parametrize("name", ["", " a", "a/../b", "a\nb", "x" * 201])
def test_a_host_that_reports_under_no_name_is_not_written_down(name):
    lease = Fleet().lease
    reports = [NodeReport(node=node, pool=lease.pool.name, at=START, resources={}, replicas=()) for node in (name, "host-2")]
    assert reconcile.register(lease, reports)
    assert Node.objects.filter(name="host-2").exists() and not Node.objects.filter(name=name).exists()
