"""Whole sweeps of shared files against the answer key of their index, also where no case names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity.bench.imports import read_files
from capacity.domain.measurement.judge import judge
from capacity.domain.measurement.slo_text import parse_slo

BENCH = Path(__file__).resolve().parents[3] / "shared" / "data" / "bench"
ANYSCALE = "vllm/anyscale_gpt-oss-120b_baseline_2xtp4/*.json"
DSTACK = "vllm/dstack_pd_ratio/1p3d_*.json"
GLM5 = "inferencex/glm5_*.json"

pytestmark = pytest.mark.skipif(not BENCH.is_dir(), reason="../shared is not here")


@pytest.mark.parametrize(
    ("files", "slo", "replicas", "kind", "level", "rate"),
    [
        (ANYSCALE, "ttft p99 500", 1, "located", 4, 644.94),
        (ANYSCALE, "ttft p99 500", 2, "located", 2, 322.47),
        (ANYSCALE, "tpot p99 12", 2, "located", 8, 869.79),
        (ANYSCALE, "ttft p95 500", 1, "at_least", 4, 644.94),
        ("vllm/anyscale_gpt-oss-120b_x2_tp4/all-parts/*.json", "ttft p99 100000", 1, "never_met", 0, 1030.53),
        (DSTACK, "ttft p99 1000", 1, "located", 64, 6483.45),
        (DSTACK, "ttft p99 2000", 1, "at_least", 128, 8706.43),
        (DSTACK, "tpot p99 12", 1, "located", 32, 4014.17),
        ("vllm/dgx-spark_gpt-oss-20b_mxfp4/11-rate-sweep-*.json", "ttft p95 2000", 1, "located", 5, 107.9),
        (GLM5, "ttft p99 1000", 1, "located", 8, 294.1),
        (GLM5, "tpot p99 80", 1, "located", 32, 648.27),
        ("aiperf/made_v0.13.0_c*/profile_export_aiperf.json", "ttft p95 200", 1, "located", 16, 725.33),
        ("guidellm/made_v0.2.1_sweep.json", "ttft p95 200", 1, "located", 5, 470.96),
        ("guidellm/v0.3_async_constant10.json", "ttft p95 200", 1, "never_met", 0, 1251.5),
        ("inference-perf/kubecon-na-2025_vllm_v0_engine/stage_*_lifecycle*.json", "ttft p95 500", 1, "located", 43, 2498.7),
    ],
)
def test_the_sweep_gives_the_measurement_of_the_key(
    files: str, slo: str, replicas: int, kind: str, level: int, rate: float
) -> None:
    (sweep,) = read_files(sorted(BENCH.glob(files))).sweeps
    found = judge(sweep, parse_slo(slo), replicas).measured
    assert found is not None
    assert (found.kind, found.max_concurrency) == (kind, level)
    assert found.tokens_per_second == pytest.approx(rate, rel=1e-3)


def test_what_is_simulated_stays_apart_by_group_and_says_so() -> None:
    sweeps = read_files([BENCH / "catalog" / "llm-d-planner_BLIS_4groups.json"]).sweeps
    found = [judge(sweep, parse_slo("ttft p95 500, itl p95 50")) for sweep in sweeps]
    assert sorted(judgement.measured.max_concurrency for judgement in found if judgement.measured) == [4, 5, 12, 12]
    assert all(judgement.measured and judgement.measured.kind == "at_least" for judgement in found)
    assert all("simulated" in stage.flags for sweep in sweeps for stage in sweep.stages)
