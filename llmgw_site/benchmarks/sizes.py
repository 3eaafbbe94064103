"""How large the made-up fleets are: those that the targets speak of, and tiny ones that show that everything runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """`window_samples`: rows a model in the window that a pass looks back on, one each 15 s. `older_samples`: rows a model
    from before it. `runs`: how often each thing is measured after one warm-up."""

    plan_models: int
    plan_replicas: int
    plan_scopes: int
    plan_runs: int
    pass_models: int
    pass_replicas_each: int
    pass_nodes: int
    window_samples: int
    older_samples: int
    pass_runs: int
    small_models: int
    page_replicas: int
    page_samples: int
    page_runs: int
    chart_runs: int
    scrape_endpoints: int
    scrape_runs: int
    sweep_streams: int
    sweep_tokens: int
    sweep_seconds: float


FULL = Sizes(
    plan_models=1_000,
    plan_replicas=100_000,
    plan_scopes=100_000,
    plan_runs=15,
    pass_models=1_000,
    pass_replicas_each=10,
    pass_nodes=100,
    window_samples=20,
    older_samples=100,
    pass_runs=15,
    small_models=10,
    page_replicas=20,
    page_samples=5_760,
    page_runs=40,
    chart_runs=20,
    scrape_endpoints=500,
    scrape_runs=5,
    sweep_streams=512,
    sweep_tokens=128,
    sweep_seconds=10.0,
)
TINY = Sizes(
    plan_models=3,
    plan_replicas=30,
    plan_scopes=20,
    plan_runs=2,
    pass_models=4,
    pass_replicas_each=3,
    pass_nodes=2,
    window_samples=20,
    older_samples=2,
    pass_runs=3,
    small_models=2,
    page_replicas=2,
    page_samples=40,
    page_runs=2,
    chart_runs=2,
    scrape_endpoints=4,
    scrape_runs=2,
    sweep_streams=4,
    sweep_tokens=4,
    sweep_seconds=0.2,
)
