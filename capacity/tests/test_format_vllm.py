"""vLLM's result files: every generation, and each trap."""

from __future__ import annotations

from typing import Any

import pytest

from capacity.bench.formats import vllm
from capacity.bench.formats.contract import Opened, Unreadable
from capacity.domain.measurement.combine import sweeps
from capacity.domain.measurement.types import Contents, Setting, Stage

RUN: dict[str, Any] = {
    "date": "20260101-120000",
    "backend": "openai-chat",
    "label": None,
    "model_id": "org/model",
    "num_prompts": 400,
    "request_rate": None,
    "max_concurrency": 16,
    "duration": 60.0,
    "completed": 400,
    "failed": 0,
    "total_input_tokens": 40_000,
    "total_output_tokens": 20_000,
    "request_throughput": 400 / 60,
    "output_throughput": 20_000 / 60,
    "total_token_throughput": 1_000.0,
    "max_output_tokens_per_s": 113.0,
    "max_concurrent_requests": 37,
    "mean_ttft_ms": 100.0,
    "median_ttft_ms": 90.0,
    "std_ttft_ms": 5.0,
    "p99_ttft_ms": 200.0,
    "p99.9_ttft_ms": 250.0,
    "mean_tpot_ms": 10.0,
    "p99_tpot_ms": 20.0,
    "p99_itl_ms": 999.0,
}


def opened(*runs: Any, where: str = "run.json") -> Opened:
    return Opened(where=where, shape="object" if len(runs) == 1 else "lines", documents=list(runs))


def read(**facts: Any) -> tuple[Setting, Stage]:
    (one,) = vllm.read(opened({**RUN, **facts})).stages
    return one


def refused(**facts: Any) -> str:
    with pytest.raises(Unreadable) as why:
        vllm.read(opened({**RUN, **facts}))
    return str(why.value)


def test_a_closed_loop_is_read_as_it_stands() -> None:
    setting, stage = read()
    assert (setting.tool, setting.model, setting.input_tokens, setting.output_tokens) == (
        "vllm bench serve",
        "org/model",
        100,
        50,
    )
    assert setting.engine is None
    assert setting.hints == {"date": "20260101-120000", "client": "openai-chat"}
    assert (stage.asked, stage.mean_in_flight, stage.requests, stage.errors, stage.seconds) == (16, None, 400, 0, 60.0)
    assert stage.ttft_ms == {"mean": 100.0, "p50": 90.0, "p99": 200.0, "p99.9": 250.0}
    assert (stage.tpot_ms, stage.e2e_ms) == ({"mean": 10.0, "p99": 20.0}, {})


def test_peaks_and_prompt_tokens_are_never_its_rate() -> None:
    assert read()[1].tokens_per_second == pytest.approx(333.333, rel=1e-5)
    assert read(output_throughput=None)[1].tokens_per_second == pytest.approx(333.333, rel=1e-5)


@pytest.mark.parametrize(
    ("facts", "asked", "mean", "flags"),
    [
        ({"request_rate": "inf"}, 16, None, set()),
        ({"request_rate": 1e9}, 16, None, set()),
        ({"request_rate": 100.0}, 16, None, set()),
        ({"mean_e2el_ms": 2300.0}, 16, 15.333, set()),
        ({"request_rate": 8.0, "mean_e2el_ms": 1500.0, "max_concurrency": None}, None, 10.0, set()),
        ({"request_rate": 8.0, "mean_e2el_ms": 1500.0}, None, 10.0, {"client_queue"}),
        ({"request_rate": 8.0, "max_concurrency": None}, None, 3.9333, {"estimated"}),
        ({"request_rate": 8.0, "max_concurrency": None, "mean_tpot_ms": 0.0}, None, None, set()),
        ({"max_concurrency": 0, "mean_e2el_ms": 1500.0}, None, 10.0, set()),
        ({"max_concurrency": None}, None, 3.9333, {"estimated"}),
    ],
)
def test_the_level_is_a_loops_setting_or_what_littles_law_gives(
    facts: dict[str, Any], asked: int | None, mean: float | None, flags: set[str]
) -> None:
    stage = read(**facts)[1]
    assert (stage.asked, stage.flags) == (asked, flags)
    assert stage.mean_in_flight == (None if mean is None else pytest.approx(mean, rel=1e-4))


def test_a_file_without_the_key_of_its_cap_is_a_run_by_rate() -> None:
    run = {key: value for key, value in RUN.items() if key != "max_concurrency"} | {"request_rate": 16.0}
    ((_, stage),) = vllm.read(opened(run)).stages
    assert stage.asked is None


def test_the_wait_in_the_clients_own_queue_counts_where_the_file_has_it() -> None:
    stage = read(request_rate=8.0, mean_e2el_ms=1500.0, p99_ttft_including_client_queue_ms=4000.0)[1]
    assert (stage.ttft_ms["p99"], stage.flags) == (4000.0, frozenset())


def test_up_to_0_11_what_did_not_come_back_has_failed() -> None:
    assert read(failed=None, completed=320)[1].errors == 80
    assert read(failed=None, num_prompts=None)[1].errors is None
    assert "errors_unknown" in read(failed=None, num_prompts=None)[1].flags


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"completed": 0, "failed": 400, "output_throughput": 0.0, "total_output_tokens": 0}, "400 of its 400 requests failed"),
        (
            {"num_prompts": 1000, "completed": 17, "failed": None, "total_output_tokens": 0, "output_throughput": 0.0},
            "983 of its 1000 requests failed and no token came back",
        ),
        ({"ramp_up_strategy": "linear"}, "ramped up, so it has no one level"),
    ],
)
def test_what_measures_nothing_is_refused_with_its_figures(facts: dict[str, Any], said: str) -> None:
    assert said in refused(**facts)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"elapsed_time": 2, "num_requests": 9, "requests_per_second": 4, "tokens_per_second": 800}, "offline throughput test"),
        ({"avg_latency": 2, "latencies": [], "percentiles": {}}, "offline latency test"),
        ({"benchmark": {"name": "vLLM benchmark"}, "model": {}, "metric": {"name": "ttft"}}, "PyTorch's dashboard"),
    ],
)
def test_other_files_of_the_tool_are_known_and_refused(document: dict[str, Any], said: str) -> None:
    assert vllm.recognises(opened(document))
    with pytest.raises(Unreadable, match=said):
        vllm.read(opened(document))


@pytest.mark.parametrize(("name", "said"), [("SERVE/warmup.json", "warm-up"), ("SERVE/run=1.failure.json", "that failed")])
def test_the_warm_up_and_failures_of_a_sweep_are_no_levels(name: str, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        vllm.read(opened(RUN, where=name))


def test_appended_runs_are_stages_and_other_lines_are_listed() -> None:
    found = vllm.read(opened(RUN, {"note": "mine"}, {**RUN, "max_concurrency": 32}, 7))
    assert [stage.where for _, stage in found.stages] == ["run.json, run 1", "run.json, run 3"]
    assert [row.where for row in found.skipped] == ["run.json, run 2", "run.json, run 4"]


def test_the_options_of_a_sweeps_runs_part_them_and_repeats_do_not() -> None:
    runs = [
        {**RUN, "run_number": number, "max_num_seqs": seqs, "duration": 60.0 + number} for number in (0, 1) for seqs in (4, 8)
    ]
    found = sweeps([vllm.read(opened(*runs))])
    assert [(sweep.setting.variant, len(sweep.stages)) for sweep in found] == [("max_num_seqs=4", 1), ("max_num_seqs=8", 1)]
    assert all("repeated" in sweep.stages[0].flags for sweep in found)


def test_groups_that_metadata_names_are_sweeps_of_their_own_and_single_marks_are_not() -> None:
    def run(level: int, deployment: str) -> dict[str, Any]:
        return {**RUN, "max_concurrency": level, "deployment": deployment, "id": f"{deployment}{level}", "gpu": "L40S"}

    runs = [run(level, deployment) for deployment in ("base", "cache") for level in (4, 8)]
    found = sweeps([vllm.read(opened(*runs))])
    assert [(sweep.setting.variant, len(sweep.stages)) for sweep in found] == [("deployment=base", 2), ("deployment=cache", 2)]
    assert found[0].setting.hints["gpu"] == "L40S"


def test_speculative_decoding_and_labels_are_variants() -> None:
    assert read(spec_decode_acceptance_rate=2.1, label="night")[0].variant == "night, speculative decoding"


def test_texts_that_nobody_needs_are_dropped() -> None:
    canary = "canary-7"
    setting, stage = read(
        api_key=canary, auth_header=canary, generated_texts=[canary], errors=[canary], tokenizer_id=canary, notes={"a": canary}
    )
    assert canary not in repr((setting, stage))


def test_a_table_of_runs_is_read_by_its_heading() -> None:
    heading = ["prefill", "isl", *(key for key in RUN if key != "failed")]
    rows = [["1", isl, *(("" if RUN[key] is None else str(RUN[key])) for key in heading[2:])] for isl in ("128", "2048")]
    found = Opened(where="results.csv", shape="csv", documents=[heading, *rows])
    assert vllm.recognises(found)
    assert [setting.variant for setting, _ in vllm.read(found).stages] == ["isl=128, prefill=1", "isl=2048, prefill=1"]


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"completed": 1},
        {"output_throughput": 1, "backend": "sglang", "completed": 1, "mean_e2e_latency_ms": 1},
        [],
        "x",
        None,
    ],
)
def test_other_documents_are_left_to_others(document: Any) -> None:
    assert not vllm.recognises(opened(document))


def test_lengths_that_leave_a_remainder_were_drawn() -> None:
    assert (read()[0].drawn, read(total_output_tokens=20_001)[0].drawn) == (False, True)


def test_its_contents_keep_the_order_of_the_file() -> None:
    found: Contents = vllm.read(opened(RUN, {**RUN, "max_concurrency": 4}))
    assert [stage.asked for _, stage in found.stages] == [16, 4]
