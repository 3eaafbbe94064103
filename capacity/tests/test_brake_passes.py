"""The brake in whole passes: a broken probe, a mass drain, a retry storm, dead hosts, and a brake that a person pulls."""

from __future__ import annotations

from datetime import timedelta

import pytest

from capacity.models import Action, Backoff, Brake, Decision, LanguageModel, Replica
from capacity.tests.factories import make_measurement, make_model, make_node, make_profile
from capacity.tests.fleet import Fleet

pytestmark = pytest.mark.django_db
PATIENCE = {"down_window_seconds": 30, "start_timeout_seconds": 120, "unready_grace_seconds": 30}


def brake(fleet: Fleet) -> Brake:
    return Brake.objects.get(pool=fleet.pool)


def withheld(fleet: Fleet) -> list[tuple[str, str]]:
    return [(row["op"], row["rule"]) for row in brake(fleet).withheld]


def ready(count: int, **options) -> Fleet:
    fleet = Fleet(**{"units": 40, "min_replicas": count, **options})
    fleet.a_pass()
    fleet.passes(1)
    assert len(fleet.names("ready")) == count
    return fleet


def decision(fleet: Fleet) -> Decision:
    return LanguageModel.objects.get(pk=fleet.model.pk).last_decision


def test_a_probe_that_breaks_for_all_replicas_at_once_stops_nothing():
    fleet = ready(4, settings=PATIENCE)
    serving = fleet.names("ready")
    for name in serving:
        fleet.fake.hang(name)
    fleet.passes(20)
    assert set(fleet.names("unready")) == set(serving)
    assert not Action.objects.filter(op__in=["drain", "cancel"]).exclude(state="withheld").exists()
    assert withheld(fleet) == [("drain", "unready_together")] * 4
    assert not Backoff.objects.exists()
    found = decision(fleet)
    assert {"kind": "brake", "rule": "unready_together", "withheld": 4} in found.limited_by
    assert "4 of 4 replicas turned unready" in found.why


def test_one_that_turns_unready_alone_is_stopped_as_ever():
    fleet = ready(4, settings=PATIENCE)
    alone = fleet.names("ready")[0]
    fleet.fake.hang(alone)
    fleet.passes(12)
    assert fleet.names("draining") == [alone]
    assert len(fleet.names("ready")) == 4


def test_what_is_withheld_is_written_once_while_it_stands():
    fleet = ready(4, settings=PATIENCE)
    for name in fleet.names("ready"):
        fleet.fake.hang(name)
    fleet.passes(12)
    before = brake(fleet)
    rows, decisions = Action.objects.filter(state="withheld").count(), Decision.objects.count()
    assert before.withheld and before.withheld_since
    fleet.passes(4)
    after = brake(fleet)
    assert (after.withheld, after.withheld_since) == (before.withheld, before.withheld_since)
    assert Action.objects.filter(state="withheld").count() == rows
    assert Decision.objects.count() == decisions
    assert all(action.message for action in Action.objects.filter(state="withheld"))


def test_what_recovers_is_withheld_no_longer():
    fleet = ready(4, settings=PATIENCE)
    names = fleet.names("ready")
    for name in names:
        fleet.fake.hang(name)
    fleet.passes(12)
    for name in names:
        fleet.fake.hang(name, False)
    fleet.passes(2)
    assert fleet.names("unready") == []
    assert brake(fleet).withheld == []
    assert brake(fleet).withheld_since is None
    assert not Action.objects.filter(state="withheld", resolved_at=None).exists()


def test_a_mass_drain_stops_two_in_ten_minutes():
    fleet = ready(6)
    LanguageModel.objects.filter(pk=fleet.model.pk).update(min_replicas=0, max_replicas=0)
    fleet.passes(15)
    assert len(fleet.names("ready")) == 4
    assert withheld(fleet) == [("drain", "stops")]
    fleet.passes(40)  # the first two have left the window, and two more have gone
    assert len(fleet.names("ready")) == 2


def test_a_retry_storm_is_braked():
    fleet = Fleet(units=40, min_replicas=40)
    fleet.fake.broken["chat"] = "CUDA out of memory"
    fleet.passes(30)
    assert Action.objects.filter(op="start").exclude(state="withheld").count() == 10  # a quarter of the units
    assert {rule for _, rule in withheld(fleet)} <= {"starts"}


def test_failing_starts_on_many_hosts_are_no_replacements_of_the_dead():
    fleet = Fleet(units=2, min_replicas=12)
    for number in range(2, 30):
        make_node(f"n{number}", pool=fleet.pool, resources={"sim": 2})
        fleet.fake.add_node(f"n{number}", "p", {"sim": 2})
    fleet.fake.broken["chat"] = "no such file"
    fleet.passes(30)
    assert Action.objects.filter(op="start").exclude(state="withheld").count() == 14  # of 58 units


def test_a_crash_of_a_whole_host_heals_up_to_the_minimum():
    fleet = ready(10)
    assert withheld(fleet) == []
    make_node("n2", pool=fleet.pool, resources={"sim": 10})
    fleet.fake.add_node("n2", "p", {"sim": 10})
    for name in fleet.names("ready"):
        fleet.fake.kill(name)
    fleet.passes(2)
    assert len(fleet.names("ready")) == 10
    assert withheld(fleet) == []
    assert [row["count"] for row in brake(fleet).recent if row["kind"] == "replacement"] == [10]


def test_replicas_on_a_lost_host_are_replaced_whatever_was_started_before():
    fleet = Fleet(units=10, min_replicas=10, settings={"down_window_seconds": 30, "brake_starts": 10})
    fleet.a_pass()
    fleet.passes(1)
    make_node("n2", pool=fleet.pool, resources={"sim": 10})
    fleet.fake.add_node("n2", "p", {"sim": 10})
    fleet.fake.silence("n1")
    fleet.passes(22)
    on_second = Replica.objects.filter(gone_at=None, nodes=["n2"]).count()
    assert on_second == 10
    assert withheld(fleet) == []


def test_a_first_bring_up_beyond_the_bound_waits():
    fleet = Fleet(units=40, min_replicas=30)
    report = fleet.a_pass()
    assert (report.sent, report.withheld) == (10, 20)
    assert withheld(fleet) == [("start", "starts")] * 20
    assert not Replica.objects.filter(intent="", gone_at=None).exists()
    assert Replica.objects.count() == 10


def test_a_pulled_brake_starts_and_stops_nothing_and_what_runs_runs_on():
    fleet = ready(2)
    Brake.objects.filter(pool=fleet.pool).update(is_on=True)
    fleet.share(60)
    report = fleet.passes(3)[-1]
    assert (report.sent, report.withheld) == (0, 4)
    assert len(fleet.names("ready")) == 2
    assert {rule for _, rule in withheld(fleet)} == {"manual"}
    Brake.objects.filter(pool=fleet.pool).update(is_on=False)
    fleet.passes(1)
    assert len(fleet.names("starting", "ready")) == 6


def test_orders_that_wait_to_be_sent_are_not_sent_while_the_brake_is_on():
    fleet = Fleet(min_replicas=1)
    fleet.fake.silence("n1")
    fleet.a_pass()
    fleet.fake.silence("n1", False)
    assert Replica.objects.get().intent == "start"
    Brake.objects.filter(pool=fleet.pool).update(is_on=True)
    fleet.fake._nodes["n1"].queue.clear()  # the task was lost on the way
    fleet.passes(2)
    assert fleet.names("starting", "ready") == []
    Brake.objects.filter(pool=fleet.pool).update(is_on=False)
    fleet.passes(2)
    assert fleet.names("ready") == [Replica.objects.get().name]


def test_a_brake_goes_off_by_itself_at_its_time():
    fleet = Fleet(min_replicas=1)
    Brake.objects.filter(pool=fleet.pool).update(is_on=True, until=fleet.fake.now() + timedelta(seconds=40), actor="alice")
    fleet.passes(2)
    assert fleet.names("starting", "ready") == []
    assert brake(fleet).is_on
    fleet.passes(1)
    assert len(fleet.names("starting")) == 1
    row = brake(fleet)
    assert (row.is_on, row.until, row.reason) == (False, None, "its time has passed")
    assert row.history.first().history_change_reason == "its time has passed"


def test_each_pool_has_its_own_brake():
    from capacity.reconcile import pools, run_pass
    from capacity.tests.factories import make_pool

    fleet = ready(1)
    other = make_pool("q")
    make_node("q1", pool=other, resources={"sim": 4})
    make_measurement(make_profile(make_model("other", pool=other, min_replicas=1), template="simulator"))
    fleet.fake.add_node("q1", "q", {"sim": 4})
    Brake.objects.filter(pool=fleet.pool).update(is_on=True)
    fleet.share(30)
    fleet.passes(1)
    assert run_pass(fleet.deps, pools(name="q")[0], fleet.fake.now()).sent == 1
    assert len(fleet.names("starting", "ready")) == 1


def test_a_quiet_pass_asks_no_query_for_the_brake(django_assert_max_num_queries):
    from capacity import reconcile

    fleet = ready(1)
    fleet.passes(2)
    fleet.fake.advance(15)
    lease = fleet.lease
    with django_assert_max_num_queries(12 + 2):
        reconcile.run_pass(fleet.deps, lease, fleet.fake.now())
    assert [row["kind"] for row in brake(fleet).recent] == ["start"]


def test_what_a_pass_would_withhold_is_told_without_a_pass(capsys, time_machine):
    from unittest import mock

    from django.core.management import call_command

    fleet = Fleet(units=40, min_replicas=30)
    time_machine.move_to(fleet.fake.now(), tick=False)
    with mock.patch("capacity.management.commands.reconcile.deps", return_value=fleet.deps):
        call_command("reconcile", "--once", "--advise")
    assert "The brake withholds" in capsys.readouterr().out
    assert brake(fleet).withheld == []
