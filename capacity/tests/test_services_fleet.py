"""What becomes of typed measurements and resources, and which rows stay while replicas need them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction

from capacity.models import LanguageModel, Measurement, Node, PoolSettings, Profile, Replica, Slo
from capacity.services import delete, node_cordon, save
from capacity.tests.factories import make_measurement, make_node, make_pool, make_profile
from quotas.models import Pool, User
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


# --- names that hosts go by ---------------------------------------------------------------------------------------
def test_a_node_that_its_host_reports_keeps_its_name() -> None:
    node = make_node(reported_at=NOW)
    was, node.name = node.name, "renamed"
    assert f"The host reports as {was}" in refusals(node)["name"][0]


def test_a_pool_that_hosts_report_to_keeps_its_name() -> None:
    node = make_node(reported_at=NOW)
    node.pool.name = "renamed"
    assert node.name in refusals(node.pool)["name"][0]


def test_names_that_no_host_goes_by_may_change() -> None:
    node = make_node()
    node.name = node.pool.name = "renamed"
    assert (save(node.pool, actor=None), save(node, actor=None)) == ([], [])


@pytest.mark.parametrize("seconds", [0, 5, 10])
def test_a_host_is_not_silent_between_two_of_its_reports(seconds):
    settings = make_pool().settings
    settings.node_silent_seconds = seconds
    with pytest.raises(ValidationError, match="Hosts report each 5 s"):
        save(settings, actor=None, reason="r")
    settings.node_silent_seconds = 11
    save(settings, actor=None, reason="r")


def test_a_pool_reads_prometheus_only_where_a_server_is_named(settings):
    settings.PROMETHEUS_URL = ""
    row = make_pool().settings
    row.load_source = "prometheus"
    with pytest.raises(ValidationError, match="LLMGW_PROMETHEUS_URL names no server") as refusal:
        save(row, actor=None, reason="r")
    assert set(refusal.value.message_dict) == {"load_source"}
    settings.PROMETHEUS_URL = "http://prometheus:9090"
    assert save(row, actor=None, reason="r") == []
    settings.PROMETHEUS_URL = ""
    row.idle_seconds += 1
    assert save(row, actor=None, reason="r") == [], "an older choice keeps nobody from another edit"


def test_a_class_by_another_name_of_a_known_product_is_warned_of_once():
    node = make_node(resources={})
    node.resources = {"gpu/h100-sxm": 8}
    assert "report that product as gpu/h100:" in " ".join(save(node, actor=None, reason="r"))
    node.labels = {"zone": "a"}
    assert save(node, actor=None, reason="r") == []
    profile = make_profile()
    profile.resource = "gpu/a100-80gb"
    assert "as gpu/a100:" in " ".join(save(profile, actor=None, reason="r"))
