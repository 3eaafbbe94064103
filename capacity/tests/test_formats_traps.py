"""The traps of each tool's files: what looks like a level, a rate or a latency and is none."""

import copy

import pytest

from capacity.bench.formats.contract import Opened, Unreadable
from capacity.tests.bench_opened import format_of, only, opened, read, with_document


def changed(name, *path, to):
    """The file's contents with one value of its first document replaced."""
    document = copy.deepcopy(opened(name).documents[0])
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    found = with_document(name, document)
    return format_of(found).read(found)


def stages(name):
    return [stage for _, stage in read(name).stages]


# SGLang


def test_a_rate_run_of_sglang_has_no_level_but_its_own_mean():
    assert [(stage.asked, stage.mean_in_flight) for stage in stages("sglang-0.4.0.jsonl")] == [(None, 5.0), (None, 12.0)]


@pytest.mark.parametrize(
    ("rate", "asked"), [(None, 8), ("inf", 8), (1e9, 8), ("Infinity", 8), (4.0, None), ("trace", None), ("4.0", None)]
)
def test_a_cap_of_sglang_is_a_level_only_without_a_rate(rate, asked):
    assert only(changed("sglang-0.5.5.jsonl", "request_rate", to=rate))[1].asked == asked


def test_the_oldest_sglang_has_medians_only_and_what_is_missing_stays_missing():
    first, _ = stages("sglang-0.4.0.jsonl")
    assert (dict(first.ttft_ms), dict(first.tpot_ms), dict(first.e2e_ms)) == ({"p50": 200.0}, {}, {"mean": 5000.0, "p50": 5000.0})


def test_sglang_never_says_how_many_failed():
    assert all("errors_unknown" in stage.flags and stage.errors is None for stage in stages("sglang-0.5.5.jsonl"))


@pytest.mark.parametrize("name", ["sglang-0.5.5.jsonl", "sglang-0.5.16.jsonl"])
def test_retokenized_output_is_never_used(name):
    assert only(changed(name, "total_output_tokens_retokenized", to=1)) == only(read(name))


def test_gpus_of_sglang_are_tensor_by_data_by_pipeline_parallel():
    assert only(read("sglang-0.5.5.jsonl"))[0].hints["gpus"] == "4"


def test_ranks_of_attention_data_parallelism_share_their_gpus_and_prefill_is_added():
    setting, _ = only(read("sglang-0.5.5-apart.jsonl"))
    assert (setting.hints["gpus"], setting.variant) == ("3", "prefill and decode apart")


def test_speculative_decoding_keeps_two_sweeps_of_sglang_apart():
    assert only(read("sglang-0.5.16.jsonl"))[0].variant == "speculative decoding on"


def test_a_run_of_sglang_without_a_finished_request_is_left_out():
    with pytest.raises(Unreadable, match="none finished"):
        changed("sglang-0.5.5.jsonl", "completed", to=0)


def test_a_line_that_is_no_run_of_sglang_is_listed():
    found = opened("sglang-0.4.0.jsonl")
    contents = format_of(found).read(Opened(where="x", shape="lines", documents=[*found.documents, {"other": 1}]))
    assert (len(contents.stages), [skipped.where for skipped in contents.skipped]) == (2, ["x, run 3"])


# AIPerf and GenAI-Perf


@pytest.mark.parametrize("metric", ["adj_time_to_first_token", "effective_latency", "inter_chunk_latency"])
@pytest.mark.parametrize("to", [{"unit": "ms", "avg": 1.0, "p95": 1.0}, None])
def test_adjusted_and_effective_latencies_and_chunks_of_aiperf_are_never_used(metric, to):
    assert changed("aiperf-0.13.json", metric, to=to) == read("aiperf-0.13.json")


def test_the_warm_up_phase_of_aiperf_is_not_the_level():
    assert only(read("aiperf-0.13.json"))[1].asked == 16


@pytest.mark.parametrize("key", ["rate", "request_rate"])
def test_the_concurrency_of_an_aiperf_run_by_rate_is_only_a_cap(key):
    phase = {"kind": "profiling", "concurrency": 16, key: 4.0}
    assert only(changed("aiperf-0.13.json", "input_config", "phases", to=[phase]))[1].asked is None


def test_the_unit_of_an_aiperf_metric_is_followed():
    metric = {"unit": "sec", "avg": 0.5, "p95": 0.75}
    assert dict(only(changed("aiperf-0.13.json", "time_to_first_token", to=metric))[1].ttft_ms) == {"mean": 500.0, "p95": 750.0}


def test_a_latency_in_a_unit_that_is_none_of_time_is_unknown():
    assert not only(changed("aiperf-0.13.json", "time_to_first_token", to={"unit": "tokens", "p95": 1.0}))[1].ttft_ms


@pytest.mark.parametrize(("key", "to"), [("was_cancelled", True), ("is_complete", False)])
def test_an_aiperf_run_that_was_cut_off_is_weak(key, to):
    assert only(changed("aiperf-0.13.json", key, to=to))[1].flags == {"weak"}


def test_failures_of_aiperf_are_also_counted_from_its_list():
    errors = [{"count": 3}, {"count": 4}]
    assert only(changed("aiperf-0.13.json", "error_summary", to=errors))[1].errors == 7


def test_genai_perf_says_nothing_of_failures_which_is_not_none():
    assert only(read("genai-perf.json"))[1].errors is None


def test_embeddings_count_input_tokens_and_say_so():
    document = copy.deepcopy(opened("aiperf-0.13.json").documents[0])
    document.pop("output_token_throughput")
    document["input_config"]["endpoint"]["type"] = "embeddings"
    document["total_isl"] = {"unit": "tokens", "avg": 32000.0}
    found = with_document("aiperf-0.13.json", document)
    _, stage = only(format_of(found).read(found))
    assert (stage.tokens_per_second, stage.flags) == (800.0, {"input_tokens"})


def test_cards_on_the_clients_node_are_a_hint_and_no_hardware():
    setting, _ = only(read("aiperf-0.13.json"))
    assert (setting.hardware, setting.hints["gpus_on_the_clients_node"]) == (None, "1 × NVIDIA H100")


def test_the_table_of_cards_in_an_aiperf_csv_is_not_read():
    assert only(read("aiperf-0.13.csv"))[1].e2e_ms["mean"] == 3800.0


# inference-perf


def test_the_level_of_inference_perf_is_what_littles_law_gives():
    _, stage = only(changed("inference-perf-stage.json", "successes", "throughput", "requests_per_sec", to=10.0))
    assert (stage.asked, stage.mean_in_flight) == (None, 15.0)


@pytest.mark.parametrize(("achieved", "flags"), [(20.0, set()), (19.0, set()), (18.9, {"weak"}), (None, set())])
def test_a_client_that_could_not_send_is_weak(achieved, flags):
    assert only(changed("inference-perf-stage.json", "load_summary", "achieved_rate", to=achieved))[1].flags == flags


def test_the_nominal_rate_of_a_closed_loop_is_not_held_against_it():
    assert "weak" not in only(read("inference-perf-closed-loop.yaml"))[1].flags


def test_a_run_that_was_not_streamed_has_only_end_to_end_latency():
    _, stage = only(read("inference-perf-not-streamed.json"))
    assert (dict(stage.ttft_ms), dict(stage.tpot_ms), stage.e2e_ms["p95"]) == ({}, {}, 2000.0)


@pytest.mark.parametrize("name", ["normalized_time_per_output_token", "inter_token_latency"])
def test_other_times_per_token_of_inference_perf_are_never_used(name):
    assert changed("inference-perf-stage.json", "successes", "latency", name, to=None) == read("inference-perf-stage.json")


def test_embeddings_of_inference_perf_count_input_tokens():
    document = copy.deepcopy(opened("inference-perf-stage.json").documents[0])
    document["successes"]["throughput"]["output_tokens_per_sec"] = document["successes"]["output_len"]["mean"] = 0.0
    found = with_document("inference-perf-stage.json", document)
    _, stage = only(format_of(found).read(found))
    assert (stage.tokens_per_second, stage.flags) == (4000.0, {"input_tokens"})


def test_a_stage_whose_requests_all_failed_is_left_out():
    with pytest.raises(Unreadable, match="all 6 failed"):
        changed("inference-perf-stage.json", "successes", "count", to=0)


# LLMPerf


def test_counts_of_llmperf_may_be_text():
    assert only(read("llmperf-summary.json"))[1].errors == 1


@pytest.mark.parametrize(("timestamp", "ended"), [(1703136129, "2023-12-21T05:22:09Z"), (1e15, None), ("soon", None), (-1, None)])
def test_the_time_of_llmperf_is_told_in_utc(timestamp, ended):
    assert only(changed("llmperf-summary.json", "timestamp", to=timestamp))[0].hints.get("ended") == ended


def test_the_throughput_of_one_stream_is_never_that_of_all():
    assert changed("llmperf-summary.json", "results_request_output_throughput_token_per_s_mean", to=1e6) == read(
        "llmperf-summary.json"
    )


def test_a_table_of_means_is_a_curve_that_nothing_can_be_judged_by():
    found = stages("llmperf-table.json")
    assert [(stage.asked, stage.tokens_per_second, dict(stage.ttft_ms)) for stage in found] == [
        (1, 30.0, {"mean": 100.0}),
        (2, 60.0, {"mean": 200.0}),
    ]


# llm-d


def test_hardware_of_a_report_is_counted_over_roles_and_replicas():
    old, new = (only(read(name))[0] for name in ("llm-d-0.1.yaml", "llm-d-0.2.yaml"))
    assert (old.hardware, old.hints["gpus"], old.variant) == ("H100", "9", "prefill and decode apart")
    assert (new.hardware, new.hints["gpus"], new.hints["replicas"], new.hints["tensor_parallel"]) == ("H100", "16", "2", "8")


def test_each_statistic_of_a_report_is_read_in_its_own_unit():
    _, stage = only(read("llm-d-0.1.yaml"))
    assert (stage.ttft_ms["p90"], stage.e2e_ms["p90"]) == (500.0, 3500.0)


@pytest.mark.parametrize(
    ("latency", "units", "mean"),
    [("time_per_output_token", "ms/token", 0.02), ("time_per_output_token", "s/token", 20.0), ("request_latency", "ms", 0.9)],
)
def test_a_latency_that_no_engine_has_is_not_imported_silently(latency, units, mean):
    with pytest.raises(Unreadable, match=latency):
        changed("llm-d-0.1.yaml", "metrics", "latency", latency, to={"units": units, "mean": mean})


def test_requests_that_still_ran_are_neither_finished_nor_errors():
    _, stage = only(read("llm-d-0.1.yaml"))
    assert (stage.requests, stage.errors, stage.incomplete) == (320, 8, 2)


@pytest.mark.parametrize("to", [None, float("inf")])
def test_an_endless_concurrency_is_no_level(to):
    assert only(changed("llm-d-0.2.yaml", "scenario", "load", "standardized", "concurrency", to=to))[1].asked is None


def test_the_concurrency_of_a_report_by_rate_is_only_a_cap():
    assert only(changed("llm-d-0.2.yaml", "scenario", "load", "standardized", "rate_qps", to=10))[1].asked is None


def test_every_report_of_a_file_is_a_stage():
    one = opened("llm-d-0.2.yaml").documents[0]
    found = Opened(where="x", shape="yaml", documents=[one, one])
    assert [stage.where for _, stage in format_of(found).read(found).stages] == ["x, run 1", "x, run 2"]


# InferenceMAX


def test_output_of_an_aggregate_is_multiplied_by_the_gpus_it_was_divided_by():
    together, apart = (only(read(f"inferencemax-{name}.json"))[1] for name in ("aggregate", "apart"))
    assert (together.tokens_per_second, apart.tokens_per_second) == (8 * 100.0, 24 * 200.0)


def test_pipeline_stages_are_gpus_too():
    setting, stage = only(changed("inferencemax-aggregate.json", "pp", to=2))
    assert (setting.hints["gpus"], stage.tokens_per_second) == ("16", 1600.0)


def test_several_nodes_that_keep_prefill_and_decode_together_share_all_gpus():
    document = dict(opened("inferencemax-apart.json").documents[0], num_decode_gpu=0, disagg=False, output_tput_per_gpu=150.0)
    found = with_document("inferencemax-apart.json", document)
    assert only(format_of(found).read(found))[1].tokens_per_second == 8 * 150.0


def test_an_experiment_counts_as_failed_what_did_not_finish():
    assert only(read("inferencex-experiment.json"))[1].errors == 2


def test_a_missing_mean_is_not_the_median():
    assert "mean" not in only(read("inferencex-experiment.json"))[1].e2e_ms


# genai-bench, TGI's inference-benchmarker, the llm-d planner


@pytest.mark.parametrize(
    ("scenario", "lengths"),
    [
        ("D(100,1000)", (100, 1000)),
        ("N(480,240)/(300,150)", (480, 300)),
        ("U(50,100)/(200,250)", (75, 225)),
        ("E(64)", (470, 310)),
        (None, (470, 310)),
    ],
)
def test_lengths_of_genai_bench_are_those_of_its_scenario(scenario, lengths):
    setting, _ = only(changed("genai-bench-run.json", "aggregated_metrics", "scenario", to=scenario))
    assert (setting.input_tokens, setting.output_tokens) == lengths


@pytest.mark.parametrize(("per_minute", "in_flight"), [(120.0, None), (90.0, 2.85), (None, None)])
def test_the_setting_of_genai_bench_stands_where_littles_law_confirms_it(per_minute, in_flight):
    _, stage = only(changed("genai-bench-run.json", "aggregated_metrics", "requests_per_minute", to=per_minute))
    assert (stage.asked, stage.mean_in_flight) == (4, in_flight and pytest.approx(in_flight))


def test_the_warm_up_of_tgis_benchmarker_is_listed_and_virtual_users_are_a_level_only_in_a_closed_loop():
    contents = read("tgi-bench.json")
    assert [skipped.where for skipped in contents.skipped] == ["tgi-bench.json, warmup"]
    assert [(stage.asked, stage.mean_in_flight) for _, stage in contents.stages] == [(128, 100.0), (None, 9.9), (None, 40.0)]


def test_a_rate_that_tgis_benchmarker_did_not_reach_is_weak():
    assert ["weak" in stage.flags for stage in stages("tgi-bench.json")] == [False, False, True]


def test_the_first_generation_of_tgis_benchmarker_has_flat_keys():
    assert [dict(stage.ttft_ms) for stage in stages("tgi-bench-first.json")] == [{"mean": 50.0, "p90": 70.0, "p95": 80.0}]


def test_each_group_of_the_planners_table_is_a_sweep_of_its_own_and_says_that_it_is_simulated():
    contents = read("llm-d-planner.json")
    assert len({setting for setting, _ in contents.stages}) == 3
    assert all("simulated" in stage.flags for _, stage in contents.stages)


def test_answers_that_fall_behind_their_requests_are_not_steady():
    assert ["not_steady" in stage.flags for stage in stages("llm-d-planner.json")] == [False, True, False, False]
