"""Every saved answer of a real engine, exporter or gateway reads as its index says; every name that is asked for exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capacity.sources.exposition import parse
from capacity.sources.names import ENGINES, WANTED, EngineNames
from capacity.sources.reading import EngineReading, read_engine, read_models, why_no_engine

DCGM = "No engine answers here, but NVIDIA's DCGM exporter."
SMI = "No engine answers here, but an exporter of nvidia-smi."
LITELLM = "A LiteLLM proxy answers here: a gateway, which does not say how many requests are in flight."


def read(engine: str, running: int, waiting: int, tokens: int | None, prompt: int | None, **more: Any) -> dict[str, Any]:
    """`kv`: mean and maximum; `counted`: observations of TTFT, TPOT, end to end; `models`: in flight of each."""
    return {"engine": engine, "running": running, "waiting": waiting, "tokens": tokens, "prompt": prompt, **more}


DP2 = read(
    "vllm", 78, 12, 534_021, 1_213_457, kv=(0.525, 0.83), counted=(400, 400, 400), models={"Qwen/Qwen3-30B-A3B": 90}
)  # fmt: skip
SAMPLES: dict[str, dict[str, Any] | str] = {
    "vllm_v0_0.5_two_models.txt": read(
        "vllm", 3, 5, 2_546, 90, kv=(0.0026, 0.0026), counted=(9, 2_537, 6),
        models={"neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8": 5, "other/OTHER": 3},
    ),
    "vllm_0.10.2_dp2.txt": DP2,
    "vllm_0.11.0_dp2.openmetrics.txt": DP2,
    "vllm_0.33.0_dp2.txt": DP2,
    "vllm_0.25.1_loaded.txt": read(
        "vllm", 64, 64, 165_293, 339_968, kv=(0.1122, 0.1122), counted=(664, 600, 600), models={"opt-125m-tp2": 128}
    ),
    "vllm032-cpu-tiny-idle.txt": read("vllm", 0, 0, 0, 0, kv=(0, 0), counted=(0, 0, 0), models={"tiny": 0}),
    "vllm032-cpu-tiny-load-c12-seqs8.txt": read(
        "vllm", 8, 4, 11_043, 8_963, kv=(0.0015, 0.0015), counted=(133, 125, 125), models={"tiny": 12}
    ),
    "vllm032-cpu-tiny-after.txt": read("vllm", 0, 0, 22_792, 11_955, kv=(0, 0), counted=(177, 177, 177), models={"tiny": 0}),
    "sglang_0.4.6.post5_dp1.txt": read(
        "sglang", 23, 5, 83_441, 313_004, kv=(0.62, 0.62), counted=(400, 2_000, 400),
        models={"meta-llama/Llama-3.1-8B-Instruct": 28},
    ),
    "sglang_0.5.2_dp2.txt": read(
        "sglang", 32, 5, 83_441, 313_004, kv=(0.43, 0.62), counted=(400, 2_000, 400),
        models={"meta-llama/Llama-3.1-8B-Instruct": 37},
    ),
    "lmdeploy_0.18.0.txt": read(
        "lmdeploy", 14, 9, 30_693, 55_499, kv=(0.47, 0.47), counted=(120, 480, 120), models={"internlm/internlm3-8b-instruct": 23}
    ),
    "llama-server-smollm2-idle.txt": read("llama.cpp", 0, 0, 0, 0),
    "llama-server-smollm2-load-c7-slots4-a.txt": read("llama.cpp", 4, 3, 0, 268),
    "llama-server-smollm2-load-c7-slots4-b.txt": read("llama.cpp", 4, 3, 384, 440),
    "llama-server-smollm2-after.txt": read("llama.cpp", 0, 0, 2_016, 1_004),
    "triton_trtllm_readme.txt": read("triton-tensorrt-llm", 1, 0, None, None, kv=(0.0002, 0.0002), models={"tensorrt_llm": 1}),
    "triton_real_after_run.txt": read("triton-tensorrt-llm", 0, 0, None, None, kv=(0, 0), models={"tensorrt_llm": 0}),
    "litellm_proxy_1.80.0.txt": LITELLM,
    "dcgm_mig_2x1g5gb_1x2g10gb.txt": DCGM,
    "dcgm_mig_disabled_duplicated.txt": DCGM,
    "dcgm_sentinel_values.txt": DCGM,
    "nvidia_gpu_exporter_h200_load.txt": SMI,
}  # fmt: skip


def kv(reading: EngineReading) -> tuple[float, float] | None:
    if reading.kv_usage_mean is None or reading.kv_usage_max is None:
        return None
    return round(reading.kv_usage_mean, 4), round(reading.kv_usage_max, 4)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_saved_answer_reads_as_its_index_says(shared: Path, name):
    text = (shared / "data" / "metrics" / name).read_text()
    reading, expected = read_engine(text), SAMPLES[name]
    if isinstance(expected, str):
        assert (reading, why_no_engine(text)) == (EngineReading(engine=None), expected)
        return
    found = read(
        reading.engine or "", reading.running or 0, reading.waiting or 0, reading.output_tokens_total, reading.prompt_tokens_total
    )
    assert found == {key: expected[key] for key in found}
    assert reading.in_flight == expected["running"] + expected["waiting"]
    assert kv(reading) == expected.get("kv")
    counted = tuple(one.count for one in (reading.latencies.get(key) for key in ("ttft", "tpot", "e2e")) if one)  # type: ignore[call-overload]
    assert counted == expected.get("counted", ())
    assert read_models(parse(text, WANTED)) == expected.get("models", {})


def test_no_saved_answer_is_left_out(shared: Path):
    assert {path.name for path in (shared / "data" / "metrics").glob("*.txt")} == set(SAMPLES)


# --- every name that is asked for exists ----------------------------------------------------------------------------


def asked(engine: EngineNames) -> list[set[str]]:
    """What is asked for, a set of alternatives each: one of them must exist."""
    wanted = [{term.name for terms in quantity for term in terms if not term.optional} for quantity in engine.quantities]
    wanted += [{f"{name}_bucket" for name in names} for names in engine.latencies.values()]
    return [names for names in wanted if names]


LISTS = [
    ("llmkube_vllm.txt", "vllm", set()),
    ("inference-perf_vllm_v0.26.0_families.txt", "vllm", set()),
    ("llmkube_sglang.txt", "sglang", set()),
    # gone since PR 13660, and asked for the older ones' sake
    ("llmkube_llamacpp.txt", "llama.cpp", {"llamacpp_kv_cache_usage_ratio"}),
]


@pytest.mark.parametrize(("name", "engine", "gone"), LISTS)
def test_every_name_that_is_asked_of_an_engine_is_on_its_list(shared: Path, name, engine, gone):
    rows = (shared / "data" / "metrics" / "name-lists" / name).read_text().splitlines()
    words = [row.replace(":", "_").split() for row in rows if row and not row.startswith("#")]
    listed = {word for word, *kind in words} | {f"{word}_bucket" for word, *kind in words if kind == ["histogram"]}
    names = next(names for names in ENGINES if names.engine == engine)
    assert [alternatives for alternatives in asked(names) if not alternatives & listed and alternatives - gone] == []


def test_no_list_of_names_is_left_out(shared: Path):
    assert {path.name for path in (shared / "data" / "metrics" / "name-lists").iterdir()} == {name for name, _, _ in LISTS}
