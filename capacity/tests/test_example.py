"""The example: written once, taken away whole, and in figures that fit the load that is made for it."""

from __future__ import annotations

import stat
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.utils import timezone
from knox.auth import TokenAuthentication

from capacity import example
from capacity.domain.measurement.evidence import sweep_of
from capacity.domain.measurement.judge import judge
from capacity.gateway.load_plan import BUILT_IN
from capacity.models import LanguageModel, Lease, Measurement, Node, PoolSettings, Profile, Replica, Slo
from capacity.services.modes import doubts
from capacity.simulator.metrics import TOKEN_BOUNDS, TTFT_BOUNDS
from capacity.slo_rows import slo_of_row
from capacity.tests.factories import make_model, make_pool
from quotas.models import CapacityQuota, Pool, Scope, User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def state(settings, tmp_path):
    settings.VAR = tmp_path
    return tmp_path


def counts() -> list[int]:
    kinds = (Pool, PoolSettings, Lease, Node, LanguageModel, Profile, Measurement, Replica, Slo, Scope, CapacityQuota, User)
    return [kind.objects.count() for kind in kinds]


def test_it_is_written_once_however_often_it_is_asked_for(state):
    example.seed()
    before, token = counts(), (state / "example" / "token").read_text()
    example.seed()
    assert counts() == before
    assert (state / "example" / "token").read_text() == token


def test_all_of_it_goes_and_again_is_nothing(state):
    before = counts()
    example.seed()
    example.remove()
    example.remove()
    assert counts() == before
    assert not (state / "example.json").exists()
    assert not (state / "example" / "token").exists()


def test_it_goes_with_replicas_that_run():
    example.seed()
    profile = Profile.objects.filter(model__name="chat").first()
    Replica.objects.create(
        name="chat-1", pool=profile.model.pool, model=profile.model, profile=profile, nodes=[example.NODE], state="ready"
    )
    example.remove()
    assert not Pool.objects.exists()


def test_what_is_not_of_the_example_stays():
    pool = make_pool("mine")
    make_model("mine", pool=pool)
    before = counts()
    example.seed()
    example.remove()
    assert counts() == before


def test_a_pool_of_that_name_that_is_not_the_example_is_left_alone():
    make_pool("example")
    example.remove()
    assert Pool.objects.filter(name="example").exists()
    with pytest.raises(ValidationError):
        example.seed()


def test_a_name_that_is_taken_refuses_all_of_it(state):
    make_model("summarize", pool=make_pool("mine"))
    before = counts()
    with pytest.raises(ValidationError):
        example.seed()
    assert counts() == before
    assert not (state / "example.json").exists()


def test_a_scope_of_the_example_that_is_used_by_others_stays():
    example.seed()
    scope = Scope.objects.get(name="example-tools")
    make_model("mine", pool=make_pool("mine"), scope=scope)
    example.remove()
    assert Scope.objects.filter(name="example-tools").exists()
    assert not Pool.objects.filter(name="example").exists()


def test_written_again_it_is_ahead_of_what_hosts_remember_of_the_former_one(time_machine):
    now = timezone.now()
    time_machine.move_to(now, tick=False)
    example.seed()
    after_a_pass_a_second = Lease.objects.get(pool__name="example").generation + 600
    example.remove()
    time_machine.move_to(now + timedelta(minutes=10), tick=False)
    example.seed()
    assert Lease.objects.get(pool__name="example").generation >= after_a_pass_a_second


def test_its_token_is_private_and_opens_the_api_for_a_service_account(state, rf):
    example.seed()
    path = state / "example" / "token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    user, _ = TokenAuthentication().authenticate(rf.get("/", HTTP_AUTHORIZATION=f"Bearer {path.read_text()}"))
    assert user.is_service
    assert not user.has_usable_password()


def test_a_lost_flag_and_a_lost_token_are_made_good(state):
    example.seed()
    (state / "example.json").unlink()
    (state / "example" / "token").unlink()
    example.follow()
    assert (state / "example.json").exists()
    assert (state / "example" / "token").exists()


def test_a_flag_without_rows_goes(state):
    (state / "example.json").write_text("{}")
    example.follow()
    assert not (state / "example.json").exists()


def test_its_measurements_are_current_and_say_where_they_come_from():
    example.seed()
    for measurement in Measurement.objects.all():
        assert measurement.status == "current"
        best = [stage for stage in measurement.evidence["stages"] if stage["concurrency"] == measurement.max_concurrency]
        assert [round(stage["tokens_per_second"], 3) for stage in best] == [round(float(measurement.tokens_per_second), 3)]


def test_each_measurement_is_what_judging_its_own_stages_by_its_slo_gives():
    example.seed()
    for row in Measurement.objects.select_related("slo", "profile__model"):
        assert row.slo == row.profile.model.slo
        found = judge(sweep_of(row.evidence), slo_of_row(row.slo)).measured
        assert (found.max_concurrency, found.kind) == (row.max_concurrency, "located") == (row.max_concurrency, row.kind)
        assert round(found.tokens_per_second, 3) == round(float(row.tokens_per_second), 3)


def test_every_bound_is_one_that_engines_count_by():
    """Inside a bucket of a histogram nobody knows how many requests were within the bound."""
    for fields in example.SIMULATED.slos.values():
        assert fields["ttft_ms"] / 1000 in TTFT_BOUNDS
        assert fields["tpot_ms"] / 1000 in TOKEN_BOUNDS


def test_none_of_its_models_asks_for_a_reason_for_want_of_a_located_measurement():
    example.seed()
    for model in LanguageModel.objects.all():
        assert [said for said in doubts(model, timezone.now()) if "located" in said] == []


def test_the_slo_of_an_earlier_version_goes_with_it():
    before = counts()
    example.seed()
    Slo.objects.filter(name="example: chat").update(name="example: interactive")
    example.remove()
    assert counts() == before


def test_its_models_are_those_that_the_gateway_sends_to():
    assert {served.name for served in example.MODELS} == set(BUILT_IN.models)


def test_a_model_that_sleeps_has_a_quiet_time_and_the_others_have_none():
    for served in example.MODELS:
        load = BUILT_IN.models[served.name]
        assert served.sleeps == (load.from_seconds > 0 or load.quiet_from_seconds < BUILT_IN.cycle_seconds)


@pytest.mark.parametrize("served", example.MODELS, ids=lambda served: served.name)
def test_the_load_goes_past_one_replica_and_back_far_enough_for_a_removal(served):
    way = max(served.ways, key=lambda way: way.priority)
    load = BUILT_IN.models[served.name]
    ttft_ms, tpot_ms = (int(way.parameters[name]) for name in ("ttft_ms", "tpot_ms"))
    seconds = ttft_ms / 1000 + load.output_tokens * tpot_ms / 1000
    in_flight = [BUILT_IN.per_second(served.name, second) * seconds for second in range(int(BUILT_IN.cycle_seconds))]
    if served.sleeps:
        assert 0 < max(in_flight) <= way.capacity
    else:
        assert max(in_flight) > way.capacity
        assert min(in_flight) < 0.7 * way.capacity


def test_the_commands_say_what_they_did(capsys):
    call_command("seed_demo")
    assert example.exists()
    call_command("seed_demo", remove=True)
    assert not example.exists()
    assert "removed" in capsys.readouterr().out
