"""Several files of those formats given at once: what is one sweep, and what is not."""

import pytest

from capacity.bench.formats.registry import read_file
from capacity.bench.imports import read_files
from capacity.tests.bench_opened import FOLDER


def imported(*names):
    return read_files([FOLDER / name for name in names], names)


@pytest.mark.parametrize(
    "names", [("aiperf-0.13-3-failed.json", "aiperf-0.13.csv"), ("aiperf-0.13.csv", "aiperf-0.13-3-failed.json")]
)
def test_the_csv_beside_an_aiperf_json_is_the_same_run(names):
    (sweep,) = imported(*names).sweeps
    assert (sweep.setting.model, len(sweep.stages), sweep.stages[0].asked) == ("org/model-7b", 1, 16)


def test_a_csv_alone_is_a_sweep_without_a_model():
    (sweep,) = imported("aiperf-0.13.csv").sweeps
    assert (sweep.setting.model, len(sweep.stages)) == (None, 1)


def test_a_csv_of_another_run_stays_a_sweep_of_its_own():
    assert len(imported("aiperf-0.13.json", "aiperf-0.13.csv").sweeps) == 2


def test_prefill_and_decode_apart_is_another_sweep_than_together():
    assert len(imported("sglang-0.5.5.jsonl", "sglang-0.5.5-apart.jsonl").sweeps) == 2


def test_stages_of_different_drawn_lengths_are_one_sweep_where_they_are_near(tmp_path):
    text = (FOLDER / "inference-perf-stage.json").read_text()
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json").write_text(text.replace('"mean": 62.3', '"mean": 64.8').replace('"count": 1200', '"count": 1300'))
    (sweep,) = read_files([tmp_path / "a.json", tmp_path / "b.json"], ["a", "b"]).sweeps
    assert sweep.setting.output_tokens in (62, 65)


def test_a_summary_beside_a_stage_is_said_and_left_out():
    found = imported("inference-perf-stage.json", "inference-perf-summary.json")
    assert (len(found.sweeps), [left.where for left in found.unread]) == (1, ["inference-perf-summary.json"])


def test_each_group_of_the_planners_table_is_a_sweep():
    assert len(imported("llm-d-planner.json").sweeps) == 3


@pytest.mark.parametrize(
    "name",
    [
        "sglang-0.5.5.jsonl",
        "aiperf-0.13.json",
        "inference-perf-stage.json",
        "llmperf-summary.json",
        "inferencemax-aggregate.json",
        "genai-bench-run.json",
        "tgi-bench-first.json",
        "evalscope-summary.json",
    ],
)
def test_results_that_were_put_into_one_file_one_after_another_are_all_read(name, tmp_path):
    (tmp_path / "all").write_text((FOLDER / name).read_text() * 2 + '{"other": 1}\n')
    contents = read_file(tmp_path / "all", "all")
    assert len(contents.stages) == 2
    assert [left.where for left in contents.skipped] in ([], ["all, run 3"])


def test_a_summary_in_one_file_with_a_stage_is_left_out_with_its_reason(tmp_path):
    (tmp_path / "all").write_text("".join((FOLDER / f"inference-perf-{kind}.json").read_text() for kind in ("summary", "stage")))
    contents = read_file(tmp_path / "all", "all")
    assert (len(contents.stages), [left.where for left in contents.skipped]) == (1, ["all, run 1"])
    assert "mean over all stages" in contents.skipped[0].why
