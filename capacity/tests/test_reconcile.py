"""A pass, from the lease to the last report, against a fleet in memory."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError

from capacity import reconcile, record
from capacity.models import Action, Backoff, Decision, LanguageModel, Lease, Node, Pass, Replica, Sample
from capacity.tests.fleet import START, Fleet

pytestmark = pytest.mark.django_db


def decision(fleet: Fleet) -> Decision:
    return LanguageModel.objects.get(pk=fleet.model.pk).last_decision


def test_a_model_below_its_minimum_is_started_and_becomes_ready():
    fleet = Fleet(min_replicas=2)
    report = fleet.a_pass()
    assert (report.outcome, report.sent) == ("done", 2)
    assert len(fleet.names("starting")) == 2
    fleet.passes(1)
    assert set(Replica.objects.values_list("state", flat=True)) == {"ready"}
    assert set(Action.objects.values_list("op", "state")) == {("start", "done")}


def test_requests_past_the_measured_concurrency_scale_up_and_what_is_idle_is_taken_back():
    fleet = Fleet(min_replicas=1)
    fleet.a_pass()
    fleet.passes(1)
    fleet.share(21)
    fleet.passes(1)
    assert decision(fleet).reason == "over_capacity"
    assert decision(fleet).count == 2
    fleet.passes(1)
    assert len(fleet.names("ready")) == 3
    reasons = []
    for _ in range(12):
        fleet.share(6)
        fleet.passes(1)
        reasons.append(decision(fleet).reason)
    assert "rest_under_threshold" in reasons
    assert len(fleet.names("ready")) == 1
    drained = Replica.objects.filter(gone_at__isnull=False)
    assert {row.drain_reason for row in drained} == {"rest_under_threshold"}
    assert set(Action.objects.filter(op="drain").values_list("state", flat=True)) == {"done"}


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


def test_a_decision_is_one_row_as_long_as_nothing_but_demand_changes():
    fleet = Fleet(min_replicas=1)
    fleet.a_pass()
    fleet.passes(4)
    rows = Decision.objects.count()
    for requests in (3, 5, 4):
        fleet.share(requests)
        fleet.passes(1)
    assert Decision.objects.count() == rows
    assert decision(fleet).seen_until == fleet.fake.now()


def test_advice_is_recorded_and_nothing_is_done():
    fleet = Fleet(min_replicas=2, mode="advise")
    fleet.a_pass()
    fleet.passes(2)
    assert fleet.names("starting", "ready") == []
    assert not Replica.objects.exists()
    assert decision(fleet).is_advice
    assert set(Action.objects.values_list("state", flat=True)) == {"advice"}
    assert Action.objects.count() == 2  # once, not once a pass


def test_a_paused_model_is_left_alone():
    fleet = Fleet(min_replicas=2, mode="paused")
    fleet.a_pass()
    assert decision(fleet).reason == "paused"
    assert fleet.names("starting", "ready") == []


def test_add_only_starts_and_never_drains():
    fleet = Fleet(min_replicas=1, mode="add_only")
    fleet.a_pass()
    fleet.passes(1)
    fleet.share(21)
    fleet.passes(2)
    fleet.share(0)
    fleet.passes(6)
    assert len(fleet.names("ready")) == 3
    assert decision(fleet).is_advice
    assert (decision(fleet).outcome, Action.objects.filter(op="drain").values_list("state", flat=True)[0]) == ("remove", "advice")


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
    from capacity.backoff import rest

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
    fleet.passes(18)
    assert Replica.objects.exclude(name=name).get().nodes == ["n2"]
    fleet.fake.silence("n1", False)
    fleet.fake.advance(5)
    fleet.a_pass()
    assert len(fleet.names("ready")) == 2  # adopted; the surplus goes by the usual rule
    fleet.passes(6)
    assert len(fleet.names("ready")) == 1


def test_a_host_that_nobody_wrote_down_joins_its_pool():
    fleet = Fleet(min_replicas=1, units=0)
    fleet.fake.add_node("n9", "p", {"sim": 4}, {"zone": "a"})
    fleet.a_pass()
    assert Node.objects.get(name="n9").resources == {"sim": 4}
    assert Replica.objects.get().nodes == ["n9"]


def test_what_runs_without_a_row_is_adopted():
    fleet = Fleet(min_replicas=1)
    fleet.a_pass()
    fleet.passes(1)
    Replica.objects.all().delete()
    fleet.passes(1)
    assert Replica.objects.get().state == "ready"
    assert len(fleet.names("ready")) == 1


def test_a_limit_that_was_set_binds_the_next_passes():
    from capacity.tests.factories import make_scope
    from quotas.models import CapacityQuota

    scope = make_scope("acme")
    fleet = Fleet(min_replicas=4, scope=scope)
    CapacityQuota.objects.create(scope=scope, pool=fleet.pool, target="sim", limit=2)
    fleet.a_pass()
    assert len(fleet.names("starting")) == 2
    limit = decision(fleet).limited_by[0]
    assert (limit["kind"], limit["scope"], limit["limit"]) == ("limit", "acme", 2)


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


def test_demand_watched_for_less_than_the_window_removes_nothing():
    fleet = Fleet(min_replicas=1, settings={"down_window_seconds": 300})
    fleet.a_pass()
    fleet.passes(1)
    fleet.share(21)
    fleet.passes(2)
    fleet.share(0)
    fleet.passes(19)
    assert decision(fleet).reason == "cooldown"
    fleet.passes(3)
    assert len(fleet.names("ready")) < 3


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


def test_a_model_at_zero_is_woken_by_what_a_gateway_holds():
    from capacity.sources.gateway import ModelPush, Push

    fleet = Fleet(min_replicas=0, scale_to_zero=True)
    fleet.a_pass()
    assert decision(fleet).reason == "steady"
    fleet.fake.advance(15)
    fleet.pushes.pushes = (Push(source="gw", at=fleet.fake.now(), models={"chat": ModelPush(held=1)}),)
    fleet.a_pass()
    assert decision(fleet).reason == "wake"
    assert len(fleet.names("starting")) == 1


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


def test_a_quiet_pass_asks_the_same_number_of_queries_whatever_the_size(django_assert_max_num_queries):
    from capacity.tests.factories import make_measurement, make_model, make_profile

    fleet = Fleet(min_replicas=0)
    for _ in range(30):
        make_measurement(make_profile(make_model(pool=fleet.pool, min_replicas=0)))
    fleet.a_pass()
    fleet.passes(1)
    fleet.fake.advance(15)
    lease = fleet.lease
    # the views are read anew in this pass; two of them open and close the transaction
    with django_assert_max_num_queries(12 + 2):
        reconcile.run_pass(fleet.deps, lease, fleet.fake.now())


def queries_of_a_pass(fleet: Fleet) -> int:
    """With both views read anew."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    fleet.fake.advance(15)
    fleet.deps.policies.expire()
    fleet.deps.measurements.expire()
    lease = fleet.lease
    with CaptureQueriesContext(connection) as asked:
        assert reconcile.run_pass(fleet.deps, lease, fleet.fake.now()).outcome == "done"
    return len(asked)


def test_passes_that_start_that_see_ready_and_that_hold_ask_no_more_queries_for_many_models_than_for_one():
    from capacity.tests.factories import make_measurement, make_model, make_profile

    fleet = Fleet(units=200, min_replicas=1)
    for_one = [queries_of_a_pass(fleet) for _ in range(4)]
    for _ in range(150):
        make_measurement(make_profile(make_model(pool=fleet.pool, min_replicas=1), template="simulator"))
    for_many = [queries_of_a_pass(fleet) for _ in range(4)]
    assert Replica.objects.filter(state="ready").count() == 151
    # the one model that held all the while has its decision's `seen_until` moved in each of the later passes
    assert all(many <= one + 1 for one, many in zip(for_one, for_many, strict=True))


@pytest.mark.parametrize(("pools", "own"), [(300, 45), (30, 45)])
def test_each_models_own_window_is_looked_back_on(pools, own):
    fleet = Fleet(min_replicas=1, settings={"down_window_seconds": pools}, down_window_seconds=own)
    fleet.a_pass()
    fleet.passes(1)
    fleet.share(21)
    fleet.passes(2)
    fleet.share(0)
    fleet.passes(3)
    assert len(fleet.names("ready")) == 3
    fleet.passes(3)
    assert len(fleet.names("ready")) < 3
