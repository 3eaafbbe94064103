"""What is read out of a file of each tool and generation: level, counts, output tokens/s, and latencies in ms."""

import pytest

from capacity.bench.formats.contract import Unreadable
from capacity.tests.bench_opened import NAMES, format_of, only, opened, read

ONE_STAGE = [
    # file, tool, model, asked, in flight, finished, errors, s, tokens/s, lengths, TTFT, TPOT, E2E, flags
    (
        "sglang-0.5.5.jsonl", "SGLang bench_serving", "org/model-3b", 8, 7.5, 100, None, 40, 80, (64, 32),
        {"mean": 30, "p50": 25, "p99": 60}, {"mean": 8, "p50": 7.5, "p99": 12}, {"p99": 4000}, {"errors_unknown"},
    ),
    (
        "sglang-0.5.16.jsonl", "SGLang bench_serving", "org/model-3b", None, 7.5, 100, None, 40, 80, (64, 32),
        {"p90": 40, "p95": 50, "p99": 60}, {"p95": 10}, {"p95": 3800}, {"errors_unknown"},
    ),
    (
        "aiperf-0.13.json", "AIPerf", "org/model-7b", 16, 15.2, 160, 0, 40, 400, (200, 100),
        {"mean": 45, "p50": 40, "p95": 95, "p99": 99}, {"mean": 20, "p95": 24}, {"p95": 3950}, set(),
    ),
    (
        "aiperf-0.4-cancelled.json", "AIPerf", "org/model-7b", 16, 15.2, 160, 0, 40, 400, (200, 100),
        {"p95": 95}, {"p95": 24}, {"p95": 3950}, {"weak"},
    ),
    (
        "aiperf-0.13-a-third-failed.json", "AIPerf", "org/model-7b", 16, 15.2, 66, 34, 40, 400, (200, 100),
        {"p95": 95}, {"p95": 24}, {"mean": 3800, "p95": 3950}, set(),
    ),
    (
        "genai-perf.json", "GenAI-Perf", "org/model-7b", 16, 15.2, 160, None, 40, 400, (200, 100),
        {"p95": 95}, {"p95": 24}, {"p95": 3950}, {"errors_unknown"},
    ),
    (
        "aiperf-0.13.csv", "AIPerf", None, None, 15.2, 160, 3, 40, 400, (200, 100),
        {"mean": 45, "p50": 40, "p90": 90, "p95": 95, "p99": 99}, {"p95": 24}, {"mean": 3800, "p50": 3700}, set(),
    ),
    (
        "genai-perf.csv", "GenAI-Perf", None, None, 15.2, 160, None, 40, 400, (200, 100),
        {"p95": 95}, {"p95": 24}, {"mean": 3800, "p99": 4000}, {"errors_unknown"},
    ),
    (
        "inference-perf-stage.json", "inference-perf", None, None, 30, 1200, 6, 60, 1200, (204, 62),
        {"mean": 200, "p50": 200, "p95": 400, "p99.9": 480}, {"mean": 10, "p95": 12}, {"mean": 1500, "p95": 2000}, set(),
    ),
    (
        "inference-perf-closed-loop.yaml", "inference-perf", None, 16, 15.19, 600, 0, 61.5, 600, (None, None),
        {"p99": 200}, {"p99": 20}, {"p99": 2000}, set(),
    ),
    (
        "llmperf-summary.json", "LLMPerf", "org/model-70b", 5, 4.8, 149, 1, 74.5, 210, (550, 150),
        {"p50": 250, "p95": 360, "p99": 720}, {"p95": 23}, {"mean": 2400, "p95": 3100}, set(),
    ),
    (
        "llm-d-0.1.yaml", "llm-d-benchmark", "org/model-685b", 16, 15.6, 320, 8, 60, 520, (500, 100),
        {"p50": 390, "p90": 500}, {"mean": 20, "p90": 25}, {"mean": 3000, "p90": 3500}, set(),
    ),
    (
        "llm-d-0.2.yaml", "llm-d-benchmark", "org/model-1b", 32, 31.35, 500, 0, 90.5, 5000, (2148, 1000),
        {"mean": 40, "p95": 45, "p99.9": 57, "p0.1": 20}, {"mean": 5.7}, {"mean": 5700}, set(),
    ),
    (
        "inferencemax-aggregate.json", "InferenceMAX", "org/model-70b", 16, None, None, None, None, 800, (1024, 1024),
        {"mean": 250, "p50": 200, "p99": 900, "p99.9": 990}, {"p50": 10, "p99": 20}, {"p99": 12000}, {"errors_unknown"},
    ),
    (
        "inferencemax-apart.json", "InferenceMAX", "org/model-70b", 16, None, None, None, None, 4800, (1024, 1024),
        {"p99": 900}, {"p99": 20}, {"p99": 12000}, {"errors_unknown"},
    ),
    (
        "inferencex-experiment.json", "InferenceMAX", "org/model-5", 4, None, 40, 2, 31, 165, (1024, 128),
        {"p50": 265, "p99": 585}, {"p50": 21.4, "p99": 26.5}, {"p50": 3000, "p99": 3700}, set(),
    ),
    (
        "genai-bench-run.json", "genai-bench", None, 4, None, 60, 2, 30, 220, (480, 300),
        {"mean": 52, "p95": 60}, {"p95": 20}, {"p99": 2300}, set(),
    ),
    (
        "evalscope-summary.json", "evalscope", None, 8, 7.68, 98, 2, 60, 200, (512, 128),
        {"mean": 120}, {"mean": 20}, {"mean": 4800}, set(),
    ),
    (
        "evalscope-older.json", "evalscope", None, 8, 7.68, 98, 2, 60, 200, (512, 128),
        {"mean": 120}, {"mean": 20}, {"mean": 4800}, set(),
    ),
]  # fmt: skip

NOTHING_USABLE = [
    ("aiperf-0.13-all-failed.json", "all 20 failed"),
    ("inference-perf-summary.json", "a mean over all stages"),
    ("inference-perf-prometheus.json", "the server's own view"),
    ("llmperf-requests.json", "Import the summary"),
    ("llm-d-0.1-wrong-unit.yaml", "`units`"),
    ("llm-d-0.2.1-all-failed.yaml", "all 20 failed"),
    ("inferencemax-wrong-gpus.json", "number of GPUs is not known"),
    ("genai-bench-experiment.json", "Import the files of its runs"),
    ("evalscope-percentiles.json", "without the concurrency"),
]

SEVERAL_STAGES = ["sglang-0.4.0.jsonl", "sglang-0.5.5-apart.jsonl", "inference-perf-not-streamed.json", "llmperf-table.json",
                  "llm-d-planner.json", "tgi-bench.json", "tgi-bench-first.json"]  # fmt: skip


def close(expected):
    return None if expected is None else pytest.approx(expected)


@pytest.mark.parametrize(
    (
        "name",
        "tool",
        "model",
        "asked",
        "in_flight",
        "requests",
        "errors",
        "seconds",
        "tokens",
        "lengths",
        "ttft",
        "tpot",
        "e2e",
        "flags",
    ),
    ONE_STAGE,
    ids=[row[0] for row in ONE_STAGE],
)
def test_a_file_is_read(name, tool, model, asked, in_flight, requests, errors, seconds, tokens, lengths, ttft, tpot, e2e, flags):
    setting, stage = only(read(name))
    assert (setting.tool, setting.model, setting.input_tokens, setting.output_tokens) == (tool, model, *lengths)
    assert (stage.asked, stage.requests, stage.errors, stage.flags) == (asked, requests, errors, flags)
    assert (stage.mean_in_flight, stage.seconds, stage.tokens_per_second) == (close(in_flight), close(seconds), close(tokens))
    for expected, found in ((ttft, stage.ttft_ms), (tpot, stage.tpot_ms), (e2e, stage.e2e_ms)):
        assert {key: found.get(key) for key in expected} == close(expected)
    assert stage.where == name


@pytest.mark.parametrize(("name", "why"), NOTHING_USABLE)
def test_a_file_that_holds_nothing_usable_is_refused_with_the_reason(name, why):
    with pytest.raises(Unreadable, match=why):
        read(name)


def test_every_file_is_of_exactly_one_format():
    mine = {row[0] for row in ONE_STAGE} | {name for name, _ in NOTHING_USABLE} | set(SEVERAL_STAGES)
    assert mine <= set(NAMES)
    assert all(format_of(opened(name)) for name in mine)


def test_no_prompt_host_key_or_command_line_of_a_file_is_kept():
    for name in NAMES:
        try:
            said = repr(read(name))
        except (Unreadable, ValueError) as error:
            said = str(error)
        assert "canary" not in said.lower(), name
