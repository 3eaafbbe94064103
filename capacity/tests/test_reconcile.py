"""A pass, from the lease to the last report, against a fleet in memory."""

from __future__ import annotations

import pytest

from capacity import reconcile
from capacity.models import Action, Decision, LanguageModel, Node, Replica
from capacity.tests.fleet import Fleet

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


def test_a_host_that_nobody_wrote_down_joins_its_pool():
    fleet = Fleet(min_replicas=1, units=0)
    fleet.fake.add_node("n9", "p", {"sim": 4}, {"zone": "a"})
    fleet.a_pass()
    assert Node.objects.get(name="n9").resources == {"sim": 4}
    assert Replica.objects.get().nodes == ["n9"]


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

    fleet = Fleet(units=200, min_replicas=1, settings={"down_window_seconds": 30, "brake_starts": 1000})
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


def test_a_time_of_its_own_of_0_seconds_is_not_the_settings():
    from capacity.act import own_or

    assert (own_or(0, 600), own_or(None, 600), own_or(30, 600)) == (0, 600, 30)


def test_a_model_that_is_switched_off_ends_with_no_replica():
    from capacity.services import model_retire

    fleet = Fleet(min_replicas=2, settings={"down_window_seconds": 30, "idle_seconds": 60, "wake_seconds": 30})
    fleet.a_pass()
    fleet.passes(4)
    assert len(fleet.names("ready")) == 2
    model_retire(fleet.model, actor=None, reason="nobody asks for it")
    fleet.passes(12)
    assert fleet.names("starting", "ready", "draining") == []
    assert decision(fleet).reason == "steady"
