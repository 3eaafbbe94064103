"""Every benchmark at a tiny size: that it runs, what it is called, what it is counted in. Never how quick it was."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from llmgw_site.benchmarks.report import table, write
from llmgw_site.benchmarks.run import measure
from llmgw_site.benchmarks.sizes import TINY
from llmgw_site.benchmarks.timing import Figure, Timing, timed
from llmgw_site.benchmarks.whole_pass import make_fleet, steady_queries

UNITS = {
    "plan_100k_replicas_ms": "ms",
    "pass_sqlite_10k_replicas_ms": "ms",
    "pass_queries": "queries",
    "model_page_p95_ms": "ms",
    "model_page_kb": "kB",
    "chart_24h_ms": "ms",
    "scrape_500_endpoints_s": "s",
    "sweep_512_streams_overhead_percent": "%",
}


@pytest.mark.django_db
def test_every_benchmark_runs_and_says_its_name_and_unit(tmp_path):
    figures = list(measure(TINY))
    write(figures, tmp_path / "var" / "bench.json")
    rows = json.loads((tmp_path / "var" / "bench.json").read_text())
    assert {row["name"]: row["unit"] for row in rows} == UNITS
    assert all(set(row) == {"name", "value", "unit"} and row["value"] > 0 for row in rows)
    assert {figure.name for figure in figures} - UNITS.keys() == {"policy_build_100k_s"}


@pytest.mark.django_db
def test_a_steady_pass_asks_at_most_twelve_queries_however_many_models_there_are():
    fleets = [make_fleet(f"of-{models}", datetime.now(UTC), TINY, models=models) for models in (1, 150)]
    few, many = (steady_queries(fleet, passes=3) for fleet in fleets)
    assert few == many <= 12


def test_a_table_says_value_target_and_their_ratio():
    figures = [
        Figure(name="plan_100k_replicas_ms", value=300, unit="ms", target=400, note="median"),
        Figure(name="policy_build_100k_s", value=0.5, unit="s"),
    ]
    _, first, second = table(figures).splitlines()
    assert first.split() == ["plan_100k_replicas_ms", "300.0", "ms", "≤", "400", "0.75", "median"]
    assert second.split() == ["policy_build_100k_s", "0.5", "s"]


def test_the_95th_percentile_is_the_smallest_run_that_95_of_100_do_not_exceed():
    runs = [float(number) for number in range(100, 0, -1)]
    assert Timing(wall_ms=runs, cpu_ms=runs).p95_ms == 95
    assert Timing(wall_ms=runs[:20], cpu_ms=runs).p95_ms == 99
    assert Timing(wall_ms=[7.0], cpu_ms=[7.0]).p95_ms == 7


def test_the_warm_up_is_not_counted_and_each_run_is_made_ready():
    calls = []
    timing = timed(lambda: calls.append("work"), 3, before=lambda: calls.append("before"))
    assert calls == ["before", "work"] * 4
    assert len(timing.wall_ms) == len(timing.cpu_ms) == 3
