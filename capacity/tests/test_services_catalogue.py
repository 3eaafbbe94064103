"""Edits of pools, models and profiles: what they write, what they may change while things run, and what is warned of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from capacity.models import LanguageModel, Lease, Measurement, Profile, Replica
from capacity.services import delete, model_mode, model_wake, pool_create, save, version_of
from capacity.tests.factories import make_measurement, make_model, make_node, make_pool, make_profile, make_scope
from quotas.models import CapacityQuota, User
from quotas.services import revision

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STAGES = {"stages": [{"concurrency": 10}]}


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice")


def run(profile: Profile, **fields: Any) -> Replica:
    model = profile.model
    made = {"name": f"r-{Replica.objects.count()}", "pool": model.pool, "model": model, "profile": profile, **fields}
    return Replica.objects.create(**made)


def refusals(row: Any) -> dict[str, list[str]]:
    with pytest.raises(ValidationError) as refused:
        save(row, actor=None)
    return refused.value.message_dict


# --- any row ------------------------------------------------------------------------------------------------------
def test_history_says_who_and_why(alice: User) -> None:
    model = make_model()
    model.priority = 5
    save(model, actor=alice, reason="it matters now")
    entry = model.history.first()
    assert (entry.history_user, entry.history_change_reason, entry.priority) == (alice, "it matters now", 5)


@pytest.mark.parametrize("make", [make_pool, make_node, make_model, make_profile, make_measurement])
def test_an_unchanged_row_writes_no_history_and_no_revision(make: Any) -> None:
    made = make()
    row = type(made).objects.get(pk=made.pk)
    if isinstance(row, Measurement):
        row.evidence = STAGES
        row.save()
    before = (revision(), type(row).history.count())
    save(row, actor=None)
    assert (revision(), type(row).history.count()) == before


def test_a_persons_save_leaves_what_passes_wrote_meanwhile() -> None:
    model = make_model()
    LanguageModel.objects.filter(pk=model.pk).update(woken_at=NOW, short_since=NOW)
    model.priority = 7
    save(model, actor=None)
    model.refresh_from_db()
    assert (model.priority, model.woken_at, model.short_since) == (7, NOW, NOW)


def test_all_wrong_fields_are_named_at_once() -> None:
    assert set(refusals(LanguageModel(name="", pool=make_pool(), min_replicas=-1))) == {"name", "min_replicas"}


def test_the_version_moves_with_each_edit() -> None:
    model = make_model()
    before = version_of(model)
    model.priority = 1
    save(model, actor=None)
    assert version_of(model) != before


# --- pools --------------------------------------------------------------------------------------------------------
def test_a_new_pool_has_settings_without_reclaim_and_a_lease(alice: User) -> None:
    pool = pool_create("main", actor=alice)
    assert pool.settings.reclaim is False
    assert Lease.objects.filter(pool=pool).count() == 1
    assert pool.settings.history.get().history_user == alice


def test_a_pool_name_that_is_taken_is_refused() -> None:
    make_pool("main")
    with pytest.raises(ValidationError) as refused:
        pool_create("main", actor=None)
    assert list(refused.value.message_dict) == ["name"]


def test_a_wake_as_long_as_the_idle_time_is_refused_with_both_numbers() -> None:
    settings = make_pool().settings
    settings.wake_seconds = settings.idle_seconds = 60
    assert refusals(settings) == {
        "wake_seconds": [
            "wake_seconds must be below idle_seconds: a woken model would go at once (wake seconds 60, idle seconds 60)."
        ]
    }


@pytest.mark.parametrize("share", ["0", "1", "7/0", "-0.5", "70%", "1e-1", "nan", "x" * 41])
def test_a_share_that_is_not_between_0_and_1_is_refused(share: str) -> None:
    settings = make_pool().settings
    settings.scale_down_fraction = share
    assert list(refusals(settings)) == ["scale_down_fraction"]


def test_settings_raise_the_revision() -> None:
    settings = make_pool().settings
    before = revision()
    settings.reclaim = True
    save(settings, actor=None)
    assert revision() > before


# --- models -------------------------------------------------------------------------------------------------------
def test_a_maximum_below_the_minimum_is_refused_with_both_numbers() -> None:
    found = refusals(LanguageModel(name="m", pool=make_pool(), min_replicas=3, max_replicas=1))
    assert found == {"max_replicas": ["max_replicas is below min_replicas (max replicas 1, min replicas 3)."]}


def test_a_model_with_running_replicas_stays_in_its_pool() -> None:
    profile = make_profile()
    run(profile)
    profile.model.pool = make_pool()
    assert "Replicas run in" in refusals(profile.model)["pool"][0]


def test_a_model_with_running_replicas_is_not_deleted_and_the_way_out_is_said() -> None:
    profile = make_profile()
    run(profile)
    with pytest.raises(ValidationError, match="set max_replicas to 0 and wait"):
        delete(profile.model, actor=None)


def test_a_model_whose_replicas_are_gone_is_deleted(alice: User) -> None:
    profile = make_profile()
    run(profile, gone_at=NOW)
    delete(profile.model, actor=alice, reason="retired")
    entry = LanguageModel.history.filter(history_type="-").get()
    assert (entry.history_user, entry.history_change_reason) == (alice, "retired")


def test_quotas_follow_a_models_new_name_and_go_with_it() -> None:
    model = make_model("old")
    CapacityQuota.objects.create(scope=make_scope(), pool=model.pool, target="model:old", limit=2)
    model.name = "new"
    save(model, actor=None)
    assert CapacityQuota.objects.get().target == "model:new"
    delete(model, actor=None)
    assert not CapacityQuota.objects.exists()


def test_floors_beyond_the_guarantee_are_warned_of() -> None:
    team, pool = make_scope("team"), make_pool()
    CapacityQuota.objects.create(scope=team, pool=pool, target="sim", guarantee=3)
    model = make_model(pool=pool, scope=team)
    make_profile(model, units=2)
    model.min_replicas = 2
    assert "take 4 units of sim, beyond its guarantee of 3" in save(model, actor=None)[0]


def test_a_pause_is_written_with_who_and_why(alice: User) -> None:
    model = make_model()
    model_mode(model, "paused", actor=alice, reason="maintenance")
    model.refresh_from_db()
    entry = model.history.first()
    assert (model.mode, entry.history_user, entry.history_change_reason) == ("paused", alice, "maintenance")


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValidationError) as refused:
        model_mode(make_model(), "wild", actor=None, reason="")
    assert list(refused.value.message_dict) == ["mode"]


def test_a_wake_is_noted_without_history() -> None:
    model = make_model()
    before = model.history.count()
    model_wake(model, actor=None, now=NOW)
    model.refresh_from_db()
    assert (model.woken_at, model.history.count()) == (NOW, before)


def test_a_model_that_is_off_is_not_woken() -> None:
    with pytest.raises(ValidationError, match="is off"):
        model_wake(make_model(min_replicas=0, max_replicas=0), actor=None, now=NOW)


# --- profiles -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("field", "value"), [("units", 2), ("hosts", 2), ("resource", "gpu/h100")])
def test_the_price_of_a_profile_stays_while_replicas_of_it_exist(field: str, value: Any) -> None:
    profile = make_profile()
    replica = run(profile)
    setattr(profile, field, value)
    assert list(refusals(profile)) == [field]
    Replica.objects.filter(pk=replica.pk).update(gone_at=NOW)
    save(profile, actor=None)
    profile.refresh_from_db()
    assert getattr(profile, field) == value


def test_the_priority_of_a_profile_may_change_while_replicas_exist() -> None:
    profile = make_profile()
    run(profile)
    profile.priority = 9
    save(profile, actor=None)
    profile.refresh_from_db()
    assert profile.priority == 9


def test_a_profile_stays_with_its_model() -> None:
    profile = make_profile()
    profile.model = make_model()
    assert list(refusals(profile)) == ["model"]


def test_a_second_profile_of_a_name_is_refused_at_the_name() -> None:
    profile = make_profile()
    assert list(refusals(Profile(model=profile.model, name=profile.name, resource="sim"))) == ["name"]


def test_a_profile_with_running_replicas_is_not_deleted() -> None:
    profile = make_profile()
    run(profile)
    with pytest.raises(ValidationError, match="retire the profile"):
        delete(profile, actor=None)
