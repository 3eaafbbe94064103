"""What may be edited while things run, what becomes of typed numbers, and what is warned of."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction

from capacity.models import LanguageModel, Lease, Measurement, Node, PoolSettings, Profile, Replica, Slo
from capacity.services import delete, model_mode, model_wake, node_cordon, pool_create, save, version_of
from capacity.tests.factories import make_measurement, make_model, make_node, make_pool, make_profile, make_scope
from quotas.models import CapacityQuota, Pool, User
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


# --- measurements -------------------------------------------------------------------------------------------------
def typed(**fields: Any) -> Measurement:
    return Measurement(profile=make_profile(), max_concurrency=10, tokens_per_second=Decimal(100), **fields)


@pytest.mark.parametrize("evidence", [{}, {"stages": []}, {"stages": "many"}, {"engine": "vLLM"}])
def test_a_measurement_without_stages_is_assumed_whatever_was_asked(evidence: Any) -> None:
    measurement = typed(status="current", evidence=evidence)
    assert "stored as assumed" in save(measurement, actor=None)[0]
    measurement.refresh_from_db()
    assert measurement.status == "assumed"


def test_a_measurement_with_stages_keeps_its_status() -> None:
    measurement = typed(status="current", evidence=STAGES)
    assert save(measurement, actor=None) == []
    assert measurement.status == "current"


def test_other_numbers_than_the_sweep_gave_are_assumed() -> None:
    measurement = make_measurement(evidence=STAGES)
    measurement.max_concurrency = 1000
    save(measurement, actor=None)
    assert measurement.status == "assumed"


def test_an_outdated_measurement_is_accepted_only_with_a_reason() -> None:
    measurement = make_measurement(evidence=STAGES, status="stale")
    measurement.status = "current"
    assert list(refusals(measurement)) == ["status"]
    save(measurement, actor=None, reason="same engine, new name")
    assert Measurement.objects.get().status == "current"


def test_a_measurement_stays_with_its_profile() -> None:
    measurement = make_measurement(evidence=STAGES)
    measurement.profile = make_profile()
    assert list(refusals(measurement)) == ["profile"]


def test_a_measurement_raises_the_revision() -> None:
    measurement = typed()
    before = revision()
    save(measurement, actor=None)
    assert revision() > before


# --- nodes and the rest -------------------------------------------------------------------------------------------
def test_a_cordon_is_written_with_who_and_why(alice: User) -> None:
    node = make_node()
    node_cordon(node, False, actor=alice, reason="new memory")
    entry = node.history.first()
    assert (entry.schedulable, entry.history_user, entry.history_change_reason) == (False, alice, "new memory")


def test_typed_resources_never_write_over_what_the_host_reports() -> None:
    node = make_node(resources={"sim": 8}, reported_at=NOW)
    node.resources = {"sim": 800}
    assert "reports its own resources" in save(node, actor=None)[0]
    node.refresh_from_db()
    assert node.resources == {"sim": 8}


def test_typed_resources_stand_in_where_nothing_reports() -> None:
    node = make_node(resources={})
    node.resources = {"gpu/h100": 4}
    save(node, actor=None)
    node.refresh_from_db()
    assert node.resources == {"gpu/h100": 4}


@pytest.mark.parametrize("resources", [[], {"GPU": 1}, {"gpu": -1}, {"gpu": 1.5}, {"gpu": True}, {"gpu": 10**12 + 1}])
def test_resources_that_are_no_classes_with_whole_units_are_refused(resources: Any) -> None:
    found = refusals(Node(name="n", pool=make_pool(), resources=resources))
    assert list(found) == ["resources"]


@pytest.mark.parametrize("field", ["name", "pool"])
def test_a_node_with_replicas_keeps_its_name_and_pool(field: str) -> None:
    profile = make_profile()
    node = make_node(pool=profile.model.pool)
    run(profile, nodes=[node.name])
    setattr(node, field, "renamed" if field == "name" else make_pool())
    assert list(refusals(node)) == [field]


def test_a_node_with_replicas_is_not_deleted() -> None:
    profile = make_profile()
    node = make_node(pool=profile.model.pool)
    run(profile, nodes=[node.name])
    with pytest.raises(ValidationError, match="cordon it"):
        delete(node, actor=None)


def test_a_pool_with_replicas_is_not_deleted() -> None:
    profile = make_profile()
    run(profile)
    with pytest.raises(ValidationError, match="Replicas run in"):
        delete(profile.model.pool, actor=None)
    assert Pool.objects.filter(pk=profile.model.pool_id).exists()


def test_an_slo_is_written_and_deleted_with_history(alice: User) -> None:
    slo = Slo(name="chat", ttft_percentile=95, ttft_ms=500)
    save(slo, actor=alice, reason="new")
    delete(slo, actor=alice, reason="old")
    assert list(Slo.history.order_by("history_id").values_list("history_type", "history_change_reason")) == [
        ("+", "new"),
        ("-", "old"),
    ]


@pytest.mark.parametrize(
    ("kind", "column", "value"),
    [
        (PoolSettings, "wake_seconds", 10**6),
        (PoolSettings, "node_silent_seconds", 10**6),
        (LanguageModel, "max_replicas", 0),
        (Profile, "units", 0),
        (Profile, "hosts", 0),
        (Measurement, "max_concurrency", -1),
        (Measurement, "tokens_per_second", -1),
    ],
)
def test_the_database_refuses_what_the_form_refuses(kind: Any, column: str, value: int) -> None:
    make_measurement()
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE {kind._meta.db_table} SET {column} = %s", [value])
