"""Quotas are whole numbers or silent; what does not fit is refused or warned of, with its numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from time_machine import travel

from capacity.tests.factories import make_model, make_node, make_pool, make_profile, make_scope
from quotas.models import CapacityQuota, Pool, ScopeEdge
from quotas.services import quota_delete, quota_save, revision

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def pool() -> Pool:
    pool = make_pool()
    make_node(pool=pool, resources={"sim": 100})
    return pool


def saved(pool: Pool, **fields: Any) -> CapacityQuota:
    fields = {"scope": fields.pop("scope", None) or make_scope(), "target": "sim", **fields}
    quota = CapacityQuota(pool=pool, **fields)
    quota_save(quota, actor=None)
    return quota


def refusals(quota: CapacityQuota) -> dict[str, list[str]]:
    with pytest.raises(ValidationError) as refused:
        quota_save(quota, actor=None)
    return refused.value.message_dict


def warnings(pool: Pool, **fields: Any) -> list[str]:
    return quota_save(CapacityQuota(pool=pool, **{"target": "sim", **fields}), actor=None)


def test_a_limit_below_the_guarantee_is_refused_with_both_numbers(pool: Pool) -> None:
    found = refusals(CapacityQuota(scope=make_scope(), pool=pool, target="sim", guarantee=8, limit=5))
    assert found == {"limit": ["The limit is below the guarantee (limit 5, guarantee 8)."]}


@pytest.mark.parametrize("field", ["guarantee", "limit", "weight"])
@pytest.mark.parametrize("value", [-1, 10**12 + 1, 1.5, True, float("nan"), "many"])
def test_what_is_no_whole_number_up_to_10_to_the_12_is_refused_at_its_field(pool: Pool, field: str, value: Any) -> None:
    found = refusals(CapacityQuota(scope=make_scope(), pool=pool, target="sim", **{field: value}))
    assert list(found) == [field]


def test_zero_is_a_real_zero_and_null_says_nothing(pool: Pool) -> None:
    quota = saved(pool, guarantee=0, limit=0)
    quota.refresh_from_db()
    assert (quota.guarantee, quota.limit) == (0, 0)
    silent = saved(pool)
    assert (silent.guarantee, silent.limit) == (None, None)


def test_a_second_row_for_the_same_target_is_refused_at_the_target(pool: Pool) -> None:
    first = saved(pool, limit=3)
    assert "target" in refusals(CapacityQuota(scope=first.scope, pool=pool, target="sim", limit=4))


def test_a_guarantee_in_replicas_is_refused(pool: Pool) -> None:
    make_model("llama", pool=pool)
    found = refusals(CapacityQuota(scope=make_scope(), pool=pool, target="model:llama", guarantee=1))
    assert found == {"guarantee": ["A model: row takes a limit only."]}


def test_a_model_that_the_pool_does_not_have_is_refused(pool: Pool) -> None:
    make_model("elsewhere")
    found = refusals(CapacityQuota(scope=make_scope(), pool=pool, target="model:elsewhere", limit=1))
    assert found == {"target": [f"The pool {pool} has no model “elsewhere”."]}


@pytest.mark.parametrize("target", ["GPU", "gpu/", "gpu//h100", "model:", "", "gpu h100", "x" * 201])
def test_a_target_that_is_no_class_and_no_model_is_refused(pool: Pool, target: str) -> None:
    assert list(refusals(CapacityQuota(scope=make_scope(), pool=pool, target=target, limit=1))) == ["target"]


def test_a_lowered_limit_notes_when(pool: Pool) -> None:
    quota = saved(pool, limit=8)
    with travel(NOON, tick=False):
        quota.limit = 5
        quota_save(quota, actor=None)
    assert quota.lowered_at == NOON


def test_a_first_limit_is_a_lowered_one(pool: Pool) -> None:
    quota = saved(pool, guarantee=2)
    assert quota.lowered_at is None
    with travel(NOON, tick=False):
        quota.limit = 5
        quota_save(quota, actor=None)
    assert quota.lowered_at == NOON


def test_a_raised_limit_keeps_when_it_was_lowered(pool: Pool) -> None:
    with travel(NOON, tick=False):
        quota = saved(pool, limit=5)
    with travel(NOON + timedelta(hours=1), tick=False):
        quota.limit = 6
        quota_save(quota, actor=None)
    assert quota.lowered_at == NOON


def test_a_limit_taken_away_is_not_lowered(pool: Pool) -> None:
    quota = saved(pool, limit=5)
    quota.limit = None
    quota_save(quota, actor=None)
    assert quota.lowered_at is None


def test_a_limit_moved_to_another_scope_is_new_there(pool: Pool) -> None:
    quota = saved(pool, limit=5)
    with travel(NOON, tick=False):
        quota.scope = make_scope()
        quota_save(quota, actor=None)
    assert quota.lowered_at == NOON


def test_an_unchanged_quota_writes_nothing(pool: Pool) -> None:
    quota = CapacityQuota.objects.get(pk=saved(pool, limit=5).pk)
    before = (revision(), CapacityQuota.history.count())
    quota_save(quota, actor=None)
    assert (revision(), CapacityQuota.history.count()) == before


def test_edits_and_deletes_raise_the_revision(pool: Pool) -> None:
    start = revision()
    quota = saved(pool, limit=5)
    middle = revision()
    quota_delete(quota, actor=None, reason="over")
    assert start < middle < revision()
    assert CapacityQuota.history.filter(history_type="-").get().history_change_reason == "over"


def test_a_lower_limit_above_is_warned_of_with_the_numbers(pool: Pool) -> None:
    org = make_scope("org")
    saved(pool, scope=org, limit=4)
    assert warnings(pool, scope=make_scope("team", org), guarantee=6) == [
        "org has a limit of 4 on sim: the guarantee of 6 is cut to that."
    ]


def test_a_limit_on_a_path_above_the_class_counts_as_lower(pool: Pool) -> None:
    make_node(pool=pool, resources={"gpu/h100": 100})
    org = make_scope("org")
    saved(pool, scope=org, target="gpu", limit=4)
    assert "limit of 4 on gpu:" in warnings(pool, scope=make_scope("team", org), target="gpu/h100", guarantee=6)[0]


def test_guarantees_of_children_beyond_the_parents_are_warned_of(pool: Pool) -> None:
    org = make_scope("org")
    saved(pool, scope=org, guarantee=10)
    saved(pool, scope=make_scope("a", org), guarantee=6)
    said = warnings(pool, scope=make_scope("b", org), guarantee=6)
    assert len(said) == 1
    assert "add up to 12, beyond its own 10" in said[0]


def test_a_parent_that_does_not_fund_is_not_counted(pool: Pool) -> None:
    org, other = make_scope("org"), make_scope("other")
    saved(pool, scope=org, guarantee=1)
    assert warnings(pool, scope=make_scope("b", other, org), guarantee=6) == []


def test_a_guarantee_beyond_the_pool_is_warned_of(pool: Pool) -> None:
    assert "beyond the 100 units of sim" in warnings(pool, scope=make_scope(), guarantee=101)[0]


def test_a_guarantee_on_a_class_that_nobody_knows_is_warned_of(pool: Pool) -> None:
    assert "no profile takes it" in warnings(pool, scope=make_scope(), target="gpu", guarantee=1)[0]


def test_floors_beyond_the_guarantee_are_warned_of(pool: Pool) -> None:
    team = make_scope("team")
    make_profile(make_model(pool=pool, scope=team, min_replicas=2), units=2)
    said = warnings(pool, scope=team, guarantee=3)
    assert len(said) == 1
    assert "take 4 units of sim, beyond its guarantee of 3" in said[0]


def test_a_new_scope_can_be_checked_before_it_is_saved(pool: Pool) -> None:
    from quotas.models import Scope
    from quotas.services import check

    assert check(CapacityQuota(scope=Scope(name="new"), pool=pool, target="sim", limit=2)) == []


RAW = {"guarantee": None, "limit": None, "weight": 1, "target": "sim"}


@pytest.mark.parametrize(
    "wrong",
    [{"guarantee": 8, "limit": 5}, {"limit": -1}, {"limit": 10**12 + 1}, {"weight": -1}, {"target": "model:x", "guarantee": 1}],
)
def test_the_database_refuses_what_the_form_refuses(pool: Pool, wrong: dict[str, Any]) -> None:
    row = RAW | wrong
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            'INSERT INTO quotas_capacityquota (scope_id, pool_id, target, guarantee, "limit", weight, lend) '
            "VALUES (%s, %s, %s, %s, %s, %s, %s)",
            [make_scope().pk, pool.pk, row["target"], row["guarantee"], row["limit"], row["weight"], True],
        )


def test_the_database_refuses_a_second_row_for_the_same_target(pool: Pool) -> None:
    quota = saved(pool, limit=1)
    with pytest.raises(IntegrityError), transaction.atomic():
        CapacityQuota.objects.bulk_create([CapacityQuota(scope=quota.scope, pool=pool, target="sim")])


@pytest.mark.parametrize("funding", [False, True])
def test_the_database_refuses_self_parents_and_a_second_funding_parent(funding: bool) -> None:
    a, b, c = make_scope(), make_scope(), make_scope()
    ScopeEdge.objects.create(child=a, parent=b, is_funding=True)
    wrong = ScopeEdge(child=a, parent=c, is_funding=True) if funding else ScopeEdge(child=a, parent=a)
    with pytest.raises(IntegrityError), transaction.atomic():
        ScopeEdge.objects.bulk_create([wrong])
