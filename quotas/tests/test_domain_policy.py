"""May a model have one more: every limit above, by segments, counted once, with the pass's own grants."""

from __future__ import annotations

import pytest

from quotas.domain.policy import build_policy
from quotas.domain.types import Claim, LimitStop, Quota, Scope, covers

SCOPES = (
    Scope(name="top"),
    Scope(name="a", parents=("top",)),
    Scope(name="b", parents=("top",)),
    Scope(name="team", parents=("a", "b"), funding_parent="a"),
)


def stop(scope: str, target: str, limit: int, used: int) -> LimitStop:
    return LimitStop(scope=scope, target=target, limit=limit, used=used)


@pytest.mark.parametrize(
    ("target", "resource", "expected"),
    [
        ("gpu", "gpu/h100", True),
        ("gpu/h100", "gpu/h100", True),
        ("gpu/h1", "gpu/h100", False),
        ("gpu/h100", "gpu", False),
        ("gpu/h100", "gpu/h100/mig-1g", True),
        ("cpu", "gpu", False),
    ],
)
def test_a_path_binds_what_is_below_it_by_segments(target: str, resource: str, expected: bool) -> None:
    assert covers(target, resource) is expected


def test_usage_counts_a_model_once_for_an_ancestor_with_two_paths_and_grants_are_counted_in() -> None:
    policy = build_policy(SCOPES, [Quota(scope="top", target="gpu", limit=8), Quota(scope="b", target="gpu/h100", limit=6)])
    ledger = policy.ledger([Claim(model="m", scope="team", units={"gpu/h100": 4}, replicas=2)])
    assert ledger.blocked("m", "gpu/h100", 2) == ()
    ledger.grant("m", "gpu/h100", 2)
    assert ledger.blocked("m", "gpu/h100", 2) == (stop("b", "gpu/h100", 6, 6),)
    assert ledger.blocked("m", "gpu/a100", 2) == ()
    assert ledger.blocked("m", "gpu/a100", 3) == (stop("top", "gpu", 8, 6),)


def test_a_limit_on_a_model_counts_replicas_of_that_model_below_its_scope() -> None:
    policy = build_policy(SCOPES, [Quota(scope="a", target="model:m", limit=2)])
    ledger = policy.ledger(
        [Claim(model="m", scope="team", units={"cpu": 16}, replicas=2), Claim(model="n", scope="team", replicas=9)]
    )
    assert ledger.blocked("m", "cpu", 8) == (stop("a", "model:m", 2, 2),)
    assert ledger.blocked("n", "cpu", 8) == ()
    elsewhere = policy.ledger([Claim(model="m", scope="b", replicas=7)])
    assert elsewhere.blocked("m", "cpu", 8) == ()


def test_nobody_is_stopped_without_a_scope() -> None:
    policy = build_policy(SCOPES, [Quota(scope="top", target="gpu", limit=0)])
    ledger = policy.ledger([Claim(model="m", scope=None)])
    assert ledger.blocked("m", "gpu", 1) == ()
    assert not ledger.exceeded("m", "gpu")


def test_a_limit_is_passed_only_above_it() -> None:
    policy = build_policy(SCOPES, [Quota(scope="top", target="gpu", limit=3)])
    for held, expected in ((3, False), (4, True)):
        ledger = policy.ledger([Claim(model="m", scope="a", units={"gpu": held}, replicas=1)])
        assert ledger.exceeded("m", "gpu") is expected
        assert ledger.blocked("m", "gpu", 1)


def test_null_says_nothing_and_0_is_a_real_zero() -> None:
    policy = build_policy(SCOPES, [Quota(scope="a", target="gpu"), Quota(scope="b", target="gpu", limit=0)])
    ledger = policy.ledger([Claim(model="m", scope="team"), Claim(model="n", scope="a")])
    assert ledger.blocked("m", "gpu", 1) == (stop("b", "gpu", 0, 0),)
    assert ledger.blocked("n", "gpu", 1) == ()


def test_limits_of_a_cycle_and_all_above_it_bind() -> None:
    scopes = [Scope(name="x", parents=("y",)), Scope(name="y", parents=("x",)), Scope(name="z", parents=("y",))]
    policy = build_policy(scopes, [Quota(scope=name, target="gpu", limit=1) for name in "xyz"])
    ledger = policy.ledger([Claim(model="m", scope="z")])
    assert [found.scope for found in ledger.blocked("m", "gpu", 2)] == ["x", "y", "z"]


def test_without_guarantees_nobody_is_entitled_or_short_and_nothing_is_kept() -> None:
    ledger = build_policy(SCOPES, []).ledger([Claim(model="m", scope="team")])
    assert not ledger.entitled("m", "gpu", 1)
    assert not ledger.anyone_short()
    assert ledger.reserved("m", "gpu", 1, free=9) is None


def test_a_limit_below_its_own_guarantee_is_listed_once_a_scope_with_the_numbers() -> None:
    rows = [
        Quota(scope="a", target="gpu", guarantee=8, limit=5),
        Quota(scope="a", target="cpu", guarantee=2, limit=0),
        Quota(scope="b", target="gpu", guarantee=5, limit=5),
    ]
    found = [problem for problem in build_policy(SCOPES, rows).problems if problem.code == "limit_below_guarantee"]
    assert [(problem.subject, problem.detail) for problem in found] == [
        (
            "scope:a",
            "cpu: the limit 0 is below the guarantee 2; the limit holds; "
            "gpu: the limit 5 is below the guarantee 8; the limit holds",
        )
    ]
