"""The plan alone: from the domain's snapshot, with the policy of its quotas built."""

from __future__ import annotations

from capacity.bench_fleet import make_snapshot
from capacity.domain.plan import plan
from capacity.domain.types import Snapshot
from quotas.domain.policy import QuotaPolicy, build_policy

from .sizes import Sizes
from .timing import Figure, timed


def measure(sizes: Sizes) -> list[Figure]:
    snapshot = make_snapshot(sizes.plan_models, sizes.plan_replicas, sizes.plan_scopes)
    policy = build_policy(snapshot.scopes or (), snapshot.quotas or ())
    return [plan_alone(snapshot, policy, sizes.plan_runs), policy_build(snapshot)]


def plan_alone(snapshot: Snapshot, policy: QuotaPolicy, runs: int) -> Figure:
    timing = timed(lambda: plan(snapshot, policy), runs)
    note = f"median {timing.words}"
    return Figure(name="plan_100k_replicas_ms", value=timing.median_ms, unit="ms", target=400, note=note)


def policy_build(snapshot: Snapshot) -> Figure:
    """Once for each change of scopes or quotas, not once a pass."""
    timing = timed(lambda: build_policy(snapshot.scopes or (), snapshot.quotas or ()), 3)
    return Figure(name="policy_build_100k_s", value=timing.median_ms / 1000, unit="s", note=f"median {timing.words}")
