"""What each scope is entitled to of a class before anybody asks: guarantees through one parent, limits through all."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.domain.entitlement import problems_of
from quotas.domain.policy import QuotaPolicy, build_policy
from quotas.domain.shares import in_proportion
from quotas.domain.types import Quota, Scope

GPU = "gpu/h100"


def policy_of(scopes: Mapping[str, str], rows: Mapping[str, tuple[int | None, int | None]]) -> QuotaPolicy:
    """`scopes`: name → parents, the funding one first; `rows`: scope → guarantee and limit on the class."""
    graph = []
    for name, parents in scopes.items():
        above = tuple(parents.split())
        graph.append(Scope(name=name, parents=above, funding_parent=above[0] if above else None))
    quotas = [Quota(scope=name, target=GPU, guarantee=g, limit=limit) for name, (g, limit) in rows.items()]
    return build_policy(graph, quotas)


TABLE = {
    "guarantees that fit are assured": ({"A": "", "B": ""}, {"A": (4, 8), "B": (4, None)}, 10, {"A": 4, "B": 4}),
    "a silent parent is transparent": (
        {"org": "", "A": "org", "B": "org"},
        {"A": (4, 8), "B": (4, None)},
        10,
        {"org": 8, "A": 4, "B": 4},
    ),
    "a shared scope is reserved for once": ({"A": "", "B": "", "P": "A B"}, {"P": (4, None)}, 8, {"A": 4, "B": 0, "P": 4}),
    "a limit of a parent that does not fund cuts": (
        {"A": "", "B": "", "P": "A B"},
        {"P": (4, None), "B": (None, 3)},
        8,
        {"A": 3, "P": 3},
    ),
    "an own limit below the guarantee holds": ({"A": "", "B": ""}, {"A": (8, 5), "B": (2, None)}, 10, {"A": 5, "B": 2}),
    "children beyond the parent are scaled": (
        {"O": "", "A": "O", "B": "O", "D": "O"},
        {"O": (10, None), "A": (6, None), "B": (6, None), "D": (3, None)},
        20,
        {"O": 10, "A": 4, "B": 4, "D": 2},
    ),
    "guarantees beyond the capacity are scaled": (
        {"A": "", "B": "", "D": ""},
        {"A": (8, None), "B": (5, None), "D": (4, None)},
        12,
        {"A": 6, "B": 3, "D": 3},
    ),
    "a guarantee of 0 is an empty envelope": ({"Y": "", "y": "Y"}, {"Y": (0, None), "y": (5, None)}, 10, {"Y": 0, "y": 0}),
    "cycles and what hangs below them are assured nothing": (
        {"X": "Y", "Y": "X", "Z": "Y", "W": ""},
        {"X": (3, 4), "Y": (3, 6), "Z": (2, None), "W": (2, None)},
        10,
        {"X": 0, "Y": 0, "Z": 0, "W": 2},
    ),
    "an unknown parent is left out": ({"T": "ghost", "U": ""}, {"T": (3, 6), "U": (3, None)}, 8, {"T": 3, "U": 3}),
    "without any node nothing is": ({"A": ""}, {"A": (4, None)}, 0, {"A": 0}),
    "where the capacity is not known nothing is scaled to it": ({"A": ""}, {"A": (4, None)}, None, {"A": 4}),
}


@pytest.mark.parametrize("name", TABLE)
def test_what_is_assured(name: str) -> None:
    scopes, rows, capacity, expected = TABLE[name]
    found = policy_of(scopes, rows).entitlements(GPU, capacity)
    assert {scope: found.assured(scope) for scope in expected} == expected


def test_the_effective_limit_is_the_smallest_of_all_above_on_the_class_and_paths_above_it() -> None:
    policy = build_policy(
        [Scope(name="top"), Scope(name="other"), Scope(name="a", parents=("top", "other"), funding_parent="top")],
        [
            Quota(scope="top", target="gpu", limit=8),
            Quota(scope="other", target=GPU, limit=6),
            Quota(scope="a", target="gpu/a100", limit=1),
            Quota(scope="a", target="model:m", limit=0),
        ],
    )
    h100, b200 = policy.entitlements(GPU, 100), policy.entitlements("gpu/b200", 100)
    assert (h100.of("a").effective_limit, h100.of("a").limit) == (6, policy.effective_limit("a", GPU))
    assert (b200.of("a").effective_limit, policy.entitlements("cpu", 1).of("a").effective_limit) == (8, None)


def test_what_was_cut_or_scaled_is_said_with_what_did_it() -> None:
    rows = {"O": (10, None), "A": (6, None), "B": (6, 3), "D": (5, None), "E": (None, 2)}
    policy = policy_of({"O": "", "A": "O", "B": "O", "D": "O E", "E": ""}, rows)
    found = {(p.code, p.subject): p.detail for p in problems_of(policy.entitlements(GPU, 8))}
    assert found == {
        ("cut", "scope:D"): "gpu/h100: the limit 2 of E on gpu/h100 cuts the guarantee 5 to 2",
        ("scaled", "scope:O"): "gpu/h100: the 8 of the pool are less than all that is reserved; 8 of 10 are assured",
        ("scaled", "scope:A"): "gpu/h100: the 8 assured to O are less than all that is reserved; 4 of 6 are assured",
        ("scaled", "scope:B"): "gpu/h100: the 8 assured to O are less than all that is reserved; 2 of 3 are assured",
    }


def test_how_much_of_a_guarantee_is_backed() -> None:
    found = policy_of({"A": "", "B": "", "N": ""}, {"A": (7, None), "B": (7, None), "N": (0, None)}).entitlements(GPU, 10)
    assert [found.of(name).backed_percent for name in ("A", "B", "N")] == [71, 71, None]


NAMES = "abcdefg"
UNITS = st.one_of(st.none(), st.integers(0, 9))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, tuple[int | None, int | None]]]:
    """Any edges, cycles and unknown parents among them; several parents."""
    scopes = {name: " ".join(draw(st.lists(st.sampled_from(NAMES + "?"), max_size=3, unique=True))) for name in NAMES}
    if draw(st.booleans()):
        scopes = {name: " ".join(p for p in parents.split() if p < name) for name, parents in scopes.items()}
    return scopes, {name: (draw(UNITS), draw(UNITS)) for name in draw(st.sets(st.sampled_from(NAMES)))}


@given(graphs(), st.integers(0, 20))
def test_what_is_assured_is_as_the_formulas_have_it(
    graph: tuple[dict[str, str], dict[str, tuple[int | None, int | None]]], capacity: int
) -> None:
    scopes, rows = graph
    policy = policy_of(scopes, rows)
    found = policy.entitlements(GPU, capacity)
    tenancy = policy.tenancy
    sound = sorted(set(NAMES) - tenancy.tangled)
    funded = {name: [c for c in sound if tenancy.funding_parent(c) == name] for name in sound}

    def least(name: str) -> int | None:
        return min((rows[a][1] for a in tenancy.ancestors(name) if a in rows and rows[a][1] is not None), default=None)

    def reserved(name: str) -> int:
        guarantee = rows.get(name, (None, None))[0]
        wanted = sum(map(reserved, funded[name])) if guarantee is None else guarantee
        limit = least(name)
        return wanted if limit is None else min(limit, wanted)

    expected = in_proportion(capacity, {name: reserved(name) for name in sound if tenancy.funding_parent(name) is None})
    todo = list(expected)
    while todo:
        parent = todo.pop()
        expected |= in_proportion(expected[parent], {child: reserved(child) for child in funded[parent]})
        todo += funded[parent]
    assert {name: found.assured(name) for name in NAMES} == {name: expected.get(name, 0) for name in NAMES}
    assert {name: found.of(name).effective_limit for name in NAMES} == {name: least(name) for name in NAMES}
