"""llama.cpp's own benchmarks: tokens a second, no latency, so a curve at most; and llama-benchy's means."""

from __future__ import annotations

from typing import Any

import pytest

from capacity.bench.formats import llama_batched_bench, llama_bench, llama_benchy
from capacity.bench.formats.contract import Opened, Unreadable
from capacity.domain.measurement.combine import sweeps
from capacity.domain.measurement.judge import judge
from capacity.domain.measurement.slo_text import parse_slo

DECODE = {
    "build_commit": "0c1e570",
    "cpu_info": "EPYC",
    "gpu_info": "",
    "model_filename": "/home/someone/m/Tiny.gguf",
    "n_batch": 2048,
    "n_prompt": 0,
    "n_gen": 32,
    "n_depth": 0,
    "avg_ns": 250_000_000,
    "avg_ts": 128.0,
    "stddev_ts": 2.0,
}


def opened(*documents: Any, shape: str = "lines") -> Opened:
    return Opened(where="run.json", shape=shape, documents=documents)  # type: ignore[arg-type]


def test_a_test_that_generates_is_one_sequence_without_a_latency() -> None:
    assert llama_bench.recognises(opened(DECODE))
    ((setting, stage),) = llama_bench.read(opened(DECODE)).stages
    assert (setting.model, setting.engine, setting.engine_version, setting.hardware) == (
        "Tiny.gguf",
        "llama.cpp",
        "0c1e570",
        "EPYC",
    )
    assert (stage.asked, stage.tokens_per_second, stage.seconds, stage.errors) == (1, 128.0, 0.25, None)
    assert not (stage.ttft_ms or stage.tpot_ms or stage.e2e_ms)
    assert stage.flags == {"errors_unknown"}


def test_its_spread_shows_a_disturbed_run() -> None:
    ((_, stage),) = llama_bench.read(opened(DECODE | {"stddev_ts": 26.0})).stages
    assert "weak" in stage.flags


def test_a_test_with_a_prompt_counts_only_what_it_generated() -> None:
    ((setting, stage),) = llama_bench.read(opened(DECODE | {"n_prompt": 512, "avg_ts": 2176.0})).stages
    assert (stage.tokens_per_second, setting.input_tokens) == (128.0, 512)


def test_a_test_that_only_reads_is_skipped_and_alone_refused() -> None:
    prefill = DECODE | {"n_prompt": 512, "n_gen": 0}
    contents = llama_bench.read(opened(prefill, DECODE, {"other": 1}))
    assert [row.where for row in contents.skipped] == ["run.json, test 1", "run.json, test 3"]
    with pytest.raises(Unreadable, match="only reads a prompt"):
        llama_bench.read(opened(prefill))


def test_the_csv_says_the_same_in_quoted_cells() -> None:
    table = opened(list(DECODE), [str(value) for value in DECODE.values()], shape="csv")
    assert llama_bench.recognises(table)
    ((setting, stage),) = llama_bench.read(table).stages
    ((known, plain),) = llama_bench.read(opened(DECODE)).stages
    assert setting == known
    assert (stage.tokens_per_second, stage.seconds) == (plain.tokens_per_second, plain.seconds)


def test_tests_of_other_settings_are_other_sweeps() -> None:
    contents = llama_bench.read(opened(DECODE, DECODE | {"n_depth": 4096}, DECODE | {"n_batch": 64}))
    assert len(sweeps([contents])) == 3


def test_parallel_sequences_are_a_curve_that_no_bound_can_be_judged_by() -> None:
    rows = [{"pl": level, "speed_tg": 100.0 * level, "n_kv": 160, "pp": 128, "tg": 32, "t": 0.6} for level in (2, 1)]
    assert llama_batched_bench.recognises(opened(*rows))
    (sweep,) = sweeps([llama_batched_bench.read(opened(*rows))])
    assert [(stage.asked, stage.tokens_per_second) for stage in sweep.stages] == [(1, 100.0), (2, 200.0)]
    assert (sweep.setting.input_tokens, sweep.setting.output_tokens) == (128, 32)
    judged = judge(sweep, parse_slo("ttft p95 200"))
    assert judged.measured is None or judged.measured.kind == "not_binding"


def test_means_over_http_are_stages_and_filling_a_context_is_none() -> None:
    test = {
        "concurrency": 2,
        "prompt_size": 512,
        "context_size": 100,
        "response_size": 32,
        "tg_throughput": {"mean": 98.7},
        "e2e_ttft": {"mean": 40.0},
    }
    document = {"version": "0.2", "model": "m", "benchmarks": [test, test | {"is_context_prefill_phase": True}, "x"]}
    assert llama_benchy.recognises(opened(document, shape="object"))
    contents = llama_benchy.read(opened(document, shape="object"))
    ((setting, stage),) = contents.stages
    assert (stage.asked, stage.tokens_per_second, stage.ttft_ms, setting.input_tokens) == (2, 98.7, {"mean": 40.0}, 612)
    assert [row.why for row in contents.skipped] == [
        "it only fills the context and generates nothing.",
        "it names no concurrency.",
    ]
