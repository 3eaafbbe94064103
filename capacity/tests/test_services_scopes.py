"""The graph of scopes stays a graph without cycles, and every edit says who and why."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from capacity.tests.factories import make_model, make_scope
from quotas.models import Scope, ScopeEdge, User
from quotas.services import check_parents, quota_save, revision, scope_delete, scope_save
from quotas.services import rows as rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice", is_superuser=True)


def parent_names(scope: Scope) -> list[str]:
    return [edge.parent.name for edge in scope.parent_edges.all()]


def test_a_scope_is_written_with_its_parents_in_their_order(alice: User) -> None:
    b, a = make_scope("b"), make_scope("a")
    team = Scope(name="team")
    scope_save(team, parents=[b, a], funding=a, actor=alice, reason="new team")
    assert parent_names(team) == ["b", "a"]
    assert team.parent_edges.get(is_funding=True).parent == a


def test_history_says_who_and_why(alice: User) -> None:
    team = Scope(name="team")
    scope_save(team, actor=alice, reason="a new customer")
    entry = team.history.get()
    assert (entry.history_user, entry.history_change_reason, entry.history_type) == (alice, "a new customer", "+")


def test_an_unchanged_scope_writes_no_history_and_no_revision(alice: User) -> None:
    org = make_scope("org")
    team = make_scope("team", org, funding=org)
    before = (revision(), ScopeEdge.history.count(), Scope.history.count())
    scope_save(team, parents=[org], funding=org, actor=alice)
    assert (revision(), ScopeEdge.history.count(), Scope.history.count()) == before


def test_an_edit_raises_the_revision(alice: User) -> None:
    before = revision()
    scope_save(Scope(name="team"), actor=alice)
    assert revision() > before


def test_without_parents_the_place_in_the_graph_stays(alice: User) -> None:
    team = make_scope("team", make_scope("org"))
    team.name = "crew"
    scope_save(team, actor=alice)
    assert parent_names(Scope.objects.get(name="crew")) == ["org"]


def test_an_empty_list_of_parents_makes_it_a_top(alice: User) -> None:
    team = make_scope("team", make_scope("org"))
    scope_save(team, parents=[], actor=alice)
    assert parent_names(team) == []


def test_the_funding_parent_can_move_in_one_edit(alice: User) -> None:
    a, b = make_scope("a"), make_scope("b")
    team = make_scope("team", a, b, funding=a)
    scope_save(team, funding=b, actor=alice)
    assert [edge.is_funding for edge in team.parent_edges.all()] == [False, True]


def test_the_order_of_parents_can_be_turned(alice: User) -> None:
    a, b = make_scope("a"), make_scope("b")
    team = make_scope("team", a, b)
    scope_save(team, parents=[b, a], actor=alice)
    assert parent_names(team) == ["b", "a"]


def test_a_cycle_is_refused_naming_the_path(alice: User) -> None:
    org = make_scope("org")
    team = make_scope("team", make_scope("department", org))
    with pytest.raises(ValidationError) as refused:
        scope_save(org, parents=[team], actor=alice)
    assert refused.value.message_dict == {"parents": ["This would be a cycle: org → team → department → org."]}
    assert parent_names(org) == []


def test_of_two_edits_that_only_together_make_a_cycle_the_second_is_refused(alice: User) -> None:
    a, b = make_scope("a"), make_scope("b")
    # both were begun before either was saved
    again = Scope.objects.get(pk=b.pk)
    scope_save(a, parents=[b], actor=alice)
    with pytest.raises(ValidationError, match="cycle: b → a → b"):
        scope_save(again, parents=[a], actor=alice)


def test_its_own_parent_is_refused(alice: User) -> None:
    team = make_scope("team")
    with pytest.raises(ValidationError, match="team cannot be its own parent"):
        scope_save(team, parents=[team], actor=alice)


def test_a_parent_named_twice_is_refused(alice: User) -> None:
    org = make_scope("org")
    with pytest.raises(ValidationError) as refused:
        scope_save(Scope(name="team"), parents=[org, org], actor=alice)
    assert "parents" in refused.value.message_dict
    assert not Scope.objects.filter(name="team").exists()


def test_a_funding_scope_that_is_no_parent_is_refused(alice: User) -> None:
    with pytest.raises(ValidationError, match="other is not among the parents"):
        scope_save(Scope(name="team"), parents=[make_scope("org")], funding=make_scope("other"), actor=alice)


def test_the_search_for_cycles_ends_on_stored_cycles() -> None:
    x = make_scope("x")
    y = make_scope("y", x)
    ScopeEdge.objects.create(child=x, parent=y)
    check_parents(make_scope("z"), [y])


def test_a_wide_graph_is_searched_in_parts() -> None:
    parents = [make_scope(f"p{number}") for number in range(600)]
    top = make_scope("top")
    ScopeEdge.objects.bulk_create(ScopeEdge(child=parent, parent=top) for parent in parents)
    with pytest.raises(ValidationError, match="cycle"):
        check_parents(top, parents)


@pytest.mark.parametrize("name", ["", " team", "a//b", "a/../b", "line\nbreak", "x" * 201])
def test_names_that_cannot_be_a_line_and_a_path_are_refused(name: str, alice: User) -> None:
    with pytest.raises(ValidationError) as refused:
        scope_save(Scope(name=name), actor=alice)
    assert list(refused.value.message_dict) == ["name"]


def test_a_scope_with_children_is_not_deleted_and_they_are_named(alice: User) -> None:
    org = make_scope("org")
    make_scope("team", org)
    with pytest.raises(ValidationError, match="org has children: team"):
        scope_delete(org, actor=alice)
    assert Scope.objects.filter(name="org").exists()


def test_a_scope_with_models_is_not_deleted_and_they_are_named(alice: User) -> None:
    org = make_scope("org")
    make_model("llama", scope=org)
    with pytest.raises(ValidationError, match="org owns models: llama"):
        scope_delete(org, actor=alice)
    assert Scope.objects.filter(name="org").exists()


def test_a_deleted_scope_takes_its_quotas_and_edges_along_with_the_reason(alice: User) -> None:
    from capacity.tests.factories import make_pool
    from quotas.models import CapacityQuota

    team = make_scope("team", make_scope("org"))
    quota = CapacityQuota(scope=team, pool=make_pool(), target="sim", limit=3)
    quota_save(quota, actor=alice)
    scope_delete(team, actor=alice, reason="customer left")
    gone = CapacityQuota.history.filter(history_type="-").get()
    assert (gone.history_user, gone.history_change_reason) == (alice, "customer left")
    assert not ScopeEdge.objects.exists()


def test_a_reason_longer_than_the_history_holds_is_refused(alice: User) -> None:
    with pytest.raises(ValidationError, match="longer than 100"):
        scope_save(Scope(name="team"), actor=alice, reason="x" * 101)
