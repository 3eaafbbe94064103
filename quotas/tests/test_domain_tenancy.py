"""The graph of scopes: ancestors as sets, cycles, unknown parents, the funding parent."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from quotas.domain.tenancy import SPELLED_OUT, Tenancy
from quotas.domain.types import Scope


def tenancy(**parents: Sequence[str]) -> Tenancy:
    return Tenancy([Scope(name=name, parents=tuple(above)) for name, above in parents.items()])


def problems(found: Tenancy) -> dict[tuple[str, str], str]:
    return {(problem.code, problem.subject): problem.detail for problem in found.problems()}


def test_ancestors_are_a_set_with_the_scope_itself() -> None:
    found = tenancy(top=(), a=("top",), b=("top",), leaf=("a", "b"))
    assert found.ancestors("leaf") == {"leaf", "a", "b", "top"}
    assert found.ancestors("top") == {"top"}


def test_forty_diamonds_on_each_other_do_not_explode() -> None:
    rows = {"d0": ()}
    for level in range(40):
        rows |= {f"l{level}": (f"d{level}",), f"r{level}": (f"d{level}",), f"d{level + 1}": (f"l{level}", f"r{level}")}
    assert len(tenancy(**rows).ancestors("d40")) == 121


def test_a_parent_that_does_not_exist_is_dropped_and_listed() -> None:
    found = tenancy(a=("ghost", "top", "gone"), top=())
    assert found.ancestors("a") == {"a", "top"}
    assert problems(found)["unknown_parent", "scope:a"] == "ghost, gone does not exist; that parent is left out"
    assert found.funding_parent("a") == "top"


@pytest.mark.parametrize(
    ("scope", "expected", "assumed"),
    [
        (Scope(name="s", parents=("a", "b")), "a", True),
        (Scope(name="s", parents=("a", "b"), funding_parent="b"), "b", False),
        (Scope(name="s", parents=("b",)), "b", False),
        (Scope(name="s"), None, False),
        (Scope(name="s", parents=("ghost",), funding_parent="ghost"), None, False),
    ],
)
def test_guarantees_come_through_one_parent(scope: Scope, expected: str | None, assumed: bool) -> None:
    found = Tenancy([Scope(name="a"), Scope(name="b"), scope])
    assert found.funding_parent("s") == expected
    assert (("assumed_funding", "scope:s") in problems(found)) is assumed


def test_each_scope_on_a_cycle_is_named_with_the_way_round_and_those_below_are_not() -> None:
    found = tenancy(x=("y",), y=("x", "top"), z=("y",), top=(), own=("own",), w=("top",))
    assert {key: text for key, text in problems(found).items() if key[0] == "cycle"} == {
        ("cycle", "scope:x"): "x → y → x",
        ("cycle", "scope:y"): "y → x → y",
        ("cycle", "scope:own"): "own → own",
    }
    assert found.tangled == {"x", "y", "z", "own"}
    assert found.ancestors("z") == {"x", "y", "z", "top"}


def test_two_knots_that_hang_together_one_way_are_two() -> None:
    found = tenancy(a=("b",), b=("a", "c"), c=("d",), d=("c",))
    assert found.cycles == (("a", "b"), ("c", "d")) or found.cycles == (("c", "d"), ("a", "b"))
    assert problems(found)["cycle", "scope:b"] == "b → a → b"


def test_a_self_parent_inside_a_larger_knot_makes_no_knot_of_its_own() -> None:
    assert tenancy(a=("a", "b"), b=("a",)).cycles == (("a", "b"),)
    assert tenancy(a=("b",), b=("a", "b")).cycles == (("a", "b"),)


def test_of_a_knot_of_many_the_size_is_named_and_the_build_ends() -> None:
    size = 20_000
    rows = [Scope(name=f"s{number}", parents=(f"s{(number + 1) % size}", "s0")) for number in range(size)]
    found = problems(Tenancy(rows))
    assert sum(code == "cycle" for code, _ in found) == size > SPELLED_OUT
    assert found["cycle", "scope:s7"] == f"s7 → s0 → … → s7, in a knot of {size} scopes"


def test_a_chain_of_any_depth_is_climbed() -> None:
    rows = [Scope(name=f"s{number}", parents=(f"s{number + 1}",)) for number in range(20_000)]
    assert len(Tenancy([*rows, Scope(name="s20000")]).ancestors("s0")) == 20_001


def test_the_order_of_rows_changes_nothing() -> None:
    rows = [Scope(name=name, parents=above) for name, above in (("a", ("b", "c")), ("b", ("a",)), ("c", ("b", "ghost")))]
    forwards, backwards = Tenancy(rows), Tenancy(rows[::-1])
    assert problems(forwards) == problems(backwards)
