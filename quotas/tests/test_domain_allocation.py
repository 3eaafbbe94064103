"""What models are entitled to in a pass, all demands known: firm first, then what idles, incumbents before wishes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.domain.allocation import Ask, units_of
from quotas.domain.policy import build_policy
from quotas.domain.types import Claim, Quota, Scope

GPU = "gpu/h100"
Asked = tuple[str, int, int]
"""Scope, units in use, units wished for besides."""


def entitled(
    scopes: Mapping[str, str],
    rows: Mapping[str, tuple[int | None, int | None]],
    capacity: int,
    models: Mapping[str, Asked],
    **other: Quota,
) -> dict[str, int]:
    """`scopes`: name → parents, the funding one first; `rows`: scope → guarantee and limit; models of one unit a replica."""
    graph = [Scope(name=n, parents=tuple(p.split()), funding_parent=(p.split() or [None])[0]) for n, p in scopes.items()]
    quotas = [Quota(scope=scope, target=GPU, guarantee=g, limit=limit) for scope, (g, limit) in rows.items()]
    policy = build_policy(graph, [*quotas, *other.values()])
    claims = [
        Claim(model=name, scope=scope, units={GPU: used}, replicas=used, using={GPU: ((1, used),)} if used else {})
        for name, (scope, used, _) in models.items()
    ]
    ledger = policy.ledger(claims, capacity={GPU: capacity})
    ledger.allocate({name: {GPU: ((1, wished),)} for name, (_, _, wished) in models.items() if wished})
    return {name: ledger.entitlement(name, GPU) for name in models}


ORG = {"org": "", "A": "org", "B": "org"}
TWO = {"O1": "", "O2": "", "a": "O1", "b": "O1", "c": "O2"}
TWO_ROWS: dict[str, tuple[int | None, int | None]] = {"O1": (8, None), "a": (4, None), "O2": (4, None)}

TABLE: dict[
    str, tuple[Mapping[str, str], Mapping[str, tuple[int | None, int | None]], int, Mapping[str, Asked], dict[str, int]]
] = {
    "what a sibling leaves idle is lent": (
        ORG,
        {"A": (4, 8), "B": (4, None)},
        10,
        {"a": ("A", 3, 6), "b": ("B", 1, 0)},
        {"a": 7, "b": 1},
    ),
    "and goes back when it is asked for": (
        ORG,
        {"A": (4, 8), "B": (4, None)},
        10,
        {"a": ("A", 8, 0), "b": ("B", 1, 3)},
        {"a": 4, "b": 4},
    ),
    "tops lend nothing to each other": ({"A": "", "B": ""}, {"A": (5, None), "B": (5, None)}, 10, {"a": ("A", 8, 0)}, {"a": 5}),
    "an incumbent keeps what its parent's other scopes leave": (
        TWO,
        TWO_ROWS,
        12,
        {"ma": ("a", 0, 4), "mb": ("b", 4, 0), "mc": ("c", 8, 0)},
        {"ma": 4, "mb": 4, "mc": 4},
    ),
    "until a sibling wants what is its own": (
        TWO,
        TWO_ROWS,
        12,
        {"ma": ("a", 1, 3), "mb": ("b", 7, 0), "mc": ("c", 4, 0)},
        {"ma": 4, "mb": 4, "mc": 4},
    ),
    "an own limit caps what may be lent": (ORG, {"A": (4, 6), "B": (4, None)}, 10, {"a": ("A", 3, 9)}, {"a": 6}),
    "cycles are entitled to nothing": ({"X": "Y", "Y": "X"}, {"X": (3, None)}, 8, {"x": ("X", 1, 2)}, {"x": 0}),
    "a limit of a parent that does not fund clips the newest wish": (
        {"A": "", "B": "", "P": "A B", "Q": "A B"},
        {"A": (8, None), "B": (None, 5)},
        10,
        {"p": ("P", 2, 2), "q": ("Q", 1, 3)},
        {"p": 4, "q": 1},
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_what_models_are_entitled_to(name: str) -> None:
    scopes, rows, capacity, models, expected = TABLE[name]
    assert entitled(scopes, rows, capacity, models) == expected


def test_weights_share_what_is_left_over_and_weight_0_comes_last() -> None:
    scopes = {"O": "", "a": "O", "b": "O", "z": "O"}
    rows = {"O": (9, None)}
    models = {"ma": ("a", 0, 9), "mb": ("b", 0, 9), "mz": ("z", 0, 9)}
    weights = {name: Quota(scope=name, target=GPU, weight=weight) for name, weight in {"a": 2, "b": 1, "z": 0}.items()}
    assert entitled(scopes, rows, 9, models, **weights) == {"ma": 6, "mb": 3, "mz": 0}
    assert entitled(scopes, rows, 9, models | {"ma": ("a", 0, 2)}, **weights) == {"ma": 2, "mb": 7, "mz": 0}


def test_who_does_not_lend_keeps_what_idles_from_siblings_and_from_bursts() -> None:
    scopes = {"O": "", "a": "O", "b": "O"}
    keeps = Quota(scope="b", target=GPU, guarantee=4, lend=False)
    models = {"ma": ("a", 0, 9), "mb": ("b", 1, 0)}
    assert entitled(scopes, {"O": (8, None)}, 10, models, b=keeps) == {"ma": 4, "mb": 1}
    graph = [Scope(name="O"), Scope(name="a", parents=("O",)), Scope(name="b", parents=("O",))]
    policy = build_policy(graph, [Quota(scope="O", target=GPU, guarantee=8), keeps])
    claim = {name: Claim(model=name, scope=s, using={GPU: ((1, used),)} if used else {}) for name, (s, used, _) in models.items()}
    ledger = policy.ledger(claim.values(), capacity={GPU: 10})
    ledger.allocate({})
    stop = ledger.reserved("ma", GPU, 1, free=3)
    assert stop is not None and (stop.scope, stop.units) == ("b", 3)
    assert ledger.reserved("ma", GPU, 1, free=4) is None
    assert ledger.reserved("mb", GPU, 1, free=1) is None


def test_what_others_are_short_of_stays_free_or_under_the_limit() -> None:
    graph = [Scope(name="top"), Scope(name="a", parents=("top",)), Scope(name="b", parents=("top",))]
    quotas = [Quota(scope="a", target=GPU, guarantee=3), Quota(scope="top", target="gpu", limit=6)]
    claims = [Claim(model="ma", scope="a"), Claim(model="mb", scope="b", units={GPU: 2}, replicas=2, using={GPU: ((1, 2),)})]
    ledger = build_policy(graph, quotas).ledger(claims, capacity={GPU: 20})
    ledger.allocate({"ma": {GPU: ((1, 3),)}, "mb": {GPU: ((1, 5),)}})
    assert ledger.reserved("mb", GPU, 1, free=18) is None
    ledger.grant("mb", GPU, 1)
    stop = ledger.reserved("mb", GPU, 1, free=17)
    assert stop is not None and (stop.scope, stop.units) == ("a", 3)
    ledger.grant("ma", GPU, 3)
    assert not ledger.anyone_short()


def test_fragments_of_a_replica_go_to_the_next() -> None:
    policy = build_policy([Scope(name="A")], [Quota(scope="A", target=GPU, guarantee=5)])
    claims = [Claim(model="big", scope="A", using={GPU: ((4, 2),)}), Claim(model="small", scope="A")]
    ledger = policy.ledger(claims, capacity={GPU: 10})
    ledger.allocate({"small": {GPU: ((1, 3),)}})
    assert (ledger.entitlement("big", GPU), ledger.entitlement("small", GPU)) == (4, 1)


def test_the_wish_of_who_is_short_for_longer_is_clipped_last() -> None:
    graph = [Scope(name="A"), Scope(name="B"), Scope(name="P", parents=("A", "B"), funding_parent="A")]
    quotas = [Quota(scope="A", target=GPU, guarantee=8), Quota(scope="B", target=GPU, limit=3)]
    since = datetime(2026, 11, 30, tzinfo=UTC)
    claims = [Claim(model="a", scope="P"), Claim(model="b", scope="P", short_since=since)]
    ledger = build_policy(graph, quotas).ledger(claims, capacity={GPU: 8})
    ledger.allocate({"a": {GPU: ((1, 3),)}, "b": {GPU: ((1, 2),)}})
    assert (ledger.entitlement("a", GPU), ledger.entitlement("b", GPU)) == (1, 2)


NAMES = "stuvw"


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[Scope], list[Quota], list[Ask], int]:
    scopes = []
    for place, name in enumerate(NAMES):
        parent = draw(st.sampled_from(["", *NAMES[:place]]))
        scopes.append(Scope(name=name, parents=(parent,) if parent else ()))
    units = st.one_of(st.none(), st.integers(0, 9))
    quotas = [
        Quota(scope=name, target=GPU, guarantee=draw(units), limit=draw(units), weight=draw(st.sampled_from([1, 1, 2, 0])))
        for name in draw(st.sets(st.sampled_from(NAMES)))
    ]
    sizes = st.tuples(st.sampled_from([1, 1, 2, 3]), st.integers(1, 4))
    asks = [
        Ask(model=f"m{i}", scope=draw(st.sampled_from(NAMES)), using=tuple(sorted(using, reverse=True)), wishes=tuple(wishes))
        for i, (using, wishes) in enumerate(
            draw(st.lists(st.tuples(st.lists(sizes, max_size=2), st.lists(sizes, max_size=1)), max_size=5))
        )
    ]
    return scopes, quotas, asks, draw(st.integers(0, 20))


@given(forests())
def test_entitlements_are_as_the_rule_is_said(world: tuple[list[Scope], list[Quota], list[Ask], int]) -> None:
    """Scope by scope from the top, one unit or one replica at a time."""
    scopes, quotas, asks, capacity = world
    policy = build_policy(scopes, quotas)
    found = policy.entitlements(GPU, capacity)
    limits = {row.scope: row.limit for row in quotas if row.limit is not None}
    weights = {row.scope: row.weight for row in quotas}
    children = {name: [s.name for s in scopes if s.parents == (name,)] for name in NAMES}
    own = {name: [ask for ask in asks if ask.scope == name] for name in NAMES}
    result: dict[str, int] = {}

    def wanted(name: str) -> int:
        total = sum(map(wanted, children[name])) + sum(ask.wanted for ask in own[name])
        return min(total, limits.get(name, total))

    def used(name: str) -> int:
        return sum(map(used, children[name])) + sum(ask.used for ask in own[name])

    def share_out(name: str, units: int) -> None:
        has = {child: min(wanted(child), found.assured(child)) for child in children[name]}
        left = units - sum(has.values())
        has |= {ask.model: 0 for ask in own[name]}
        first = {c: [1] * (min(used(c), wanted(c)) - has[c]) for c in children[name]}
        first |= {ask.model: one_by_one(ask.using) for ask in own[name]}
        left = give(first, has, left)
        second = {c: [1] * (wanted(c) - has[c]) for c in children[name]}
        second |= {ask.model: first[ask.model] + one_by_one(ask.wishes) for ask in own[name]}
        give(second, has, left)
        result.update({ask.model: has[ask.model] for ask in own[name]})
        for child in children[name]:
            share_out(child, has[child])

    def give(steps: dict[str, list[int]], has: dict[str, int], left: int) -> int:
        for weighted in (True, False):
            waiting = {c for c in steps if steps[c] and bool(weights.get(c, 1)) is weighted}
            while waiting:
                chosen = min(waiting, key=lambda c: (Fraction(has[c], weights.get(c, 1) or 1), c))
                if steps[chosen][0] > left:
                    waiting.remove(chosen)
                    continue
                size = steps[chosen].pop(0)
                has[chosen] += size
                left -= size
                waiting -= set() if steps[chosen] else {chosen}
        return left

    def one_by_one(steps: tuple[tuple[int, int], ...]) -> list[int]:
        return [size for size, count in steps for _ in range(count)]

    for scope in scopes:
        if not scope.parents:
            share_out(scope.name, min(wanted(scope.name), found.assured(scope.name)))
    claims = [Claim(model=ask.model, scope=ask.scope, using={GPU: ask.using} if ask.using else {}) for ask in asks]
    ledger = policy.ledger(claims, capacity={GPU: capacity})
    ledger.allocate({ask.model: {GPU: ask.wishes} for ask in asks if ask.wishes})
    assert {ask.model: ledger.entitlement(ask.model, GPU) for ask in asks} == result
    assert sum(result.values()) <= capacity
    assert all(units_of(ask.using) + units_of(ask.wishes) >= result[ask.model] for ask in asks)
