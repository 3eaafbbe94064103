"""GuideLLM's JSON of all generations gives the same stages."""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from capacity.bench.formats import guidellm
from capacity.bench.formats.contract import Opened, Unreadable
from capacity.bench.formats.registry import read_file
from capacity.domain.measurement.combine import sweeps
from capacity.domain.measurement.judge import judge
from capacity.domain.measurement.slo_text import parse_slo
from capacity.tests.guidellm_files import CANARY, COUNTS, GENERATIONS, concurrent, groups, read, spec, stages


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_generation_gives_the_same_stage(generation: str) -> None:
    contents = read(GENERATIONS[generation]([(concurrent(5), COUNTS)]))
    ((setting, stage),) = contents.stages
    assert (setting.model, setting.input_tokens, setting.output_tokens) == ("org/m", 64, 32)
    assert (stage.asked, stage.mean_in_flight, stage.seconds, stage.tokens_per_second) == (5, 4.8, 40.0, 300.0)
    assert (stage.requests, stage.errors, stage.incomplete) == (57, 3, 4)
    assert stage.ttft_ms["p95"] == 95 and stage.tpot_ms["p95"] == pytest.approx(9.5)
    assert stage.e2e_ms["p95"] == pytest.approx(95), "its request latency is in seconds"
    assert stage.ttft_ms["p50"] == 50 and stage.ttft_ms["mean"] == 60
    assert CANARY not in repr(contents)


def test_files_before_and_from_0_4_on_are_kept_apart() -> None:
    versions = {read(GENERATIONS[name]([(concurrent(5), COUNTS)])).stages[0][0].tool_version for name in GENERATIONS}
    assert versions == {"0.3 or older", "0.4", "0.5.4", "0.8.1"}


@pytest.mark.parametrize(
    ("strategy", "asked"),
    [
        ({"type_": "concurrent", "streams": 16}, 16),
        ({"type_": "synchronous"}, 1),
        ({"type_": "constant", "rate": 1.6}, None),
        ({"type_": "poisson", "rate": 1.6, "streams": None}, None),
        ({"type_": "concurrent", "streams": "many"}, None),
        ({"type_": "from-the-future"}, None),
    ],
)
def test_a_level_is_asked_for_only_in_a_closed_loop(strategy: dict[str, Any], asked: int | None) -> None:
    (stage,) = stages(GENERATIONS["0.8.1"]([(strategy, COUNTS)]))
    assert (stage.asked, stage.mean_in_flight) == (asked, 4.8)


def test_an_unbounded_row_is_no_level_and_is_listed() -> None:
    items = [({"type_": "synchronous"}, COUNTS), ({"type_": "throughput"}, COUNTS)]
    contents = read(GENERATIONS["0.3"](items))
    assert len(contents.stages) == 1
    assert "unbounded" in contents.skipped[0].why and "benchmark 2" in contents.skipped[0].where


def test_a_file_of_unbounded_rows_alone_is_refused() -> None:
    with pytest.raises(Unreadable, match="unbounded"):
        read(GENERATIONS["0.3"]([({"type_": "throughput"}, COUNTS)]))


def test_a_run_without_a_success_is_refused_though_its_latencies_are_zero() -> None:
    none = {"successful": 0, "errored": 20, "incomplete": 0}
    with pytest.raises(Unreadable, match="all 20 failed"):
        read(GENERATIONS["0.8.1"]([(concurrent(5), none)]))


def test_an_empty_file_of_a_known_version_is_refused() -> None:
    with pytest.raises(Unreadable, match="no run"):
        read({"metadata": {"guidellm_version": "0.8.1"}, "benchmarks": []})


@pytest.mark.parametrize(
    ("rate", "incomplete", "flags"),
    [(1.6, 4, set()), (1.6, 30, {"not_steady"}), (16, 4, {"weak"}), (None, 4, set())],
    ids=["kept up", "its queue grew", "its client fell behind", "no rate"],
)
def test_an_open_loop_says_whether_it_was_steady(rate: float | None, incomplete: int, flags: set[str]) -> None:
    counts = {"successful": 57, "errored": 3, "incomplete": incomplete}
    (stage,) = stages(GENERATIONS["0.5.4"]([({"type_": "constant", "rate": rate}, counts)]))
    assert stage.flags == flags


def test_a_closed_loop_is_not_weak_for_what_was_cut_at_its_end() -> None:
    counts = {"successful": 20, "errored": 0, "incomplete": 8}
    (stage,) = stages(GENERATIONS["0.8.1"]([(concurrent(8), counts)]))
    assert not stage.flags and stage.incomplete == 8


def test_lengths_that_were_drawn_are_one_setting_for_the_whole_file() -> None:
    document = GENERATIONS["0.8.1"]([(concurrent(2), COUNTS), (concurrent(4), COUNTS)])
    document["config"]["spec"]["data"] = ["/home/someone/chats.jsonl"]
    document["benchmarks"][1]["metrics"]["prompt_token_count"] = groups(1, 53.6)
    first, second = (setting for setting, _ in read(document).stages)
    assert first == second
    assert (first.input_tokens, first.output_tokens, first.dataset) == (53, 32, "chats.jsonl")


def test_its_own_search_for_the_limit_is_shown_and_what_it_left_open_is_weak() -> None:
    document = GENERATIONS["0.8.1"]([(concurrent(2), COUNTS), (concurrent(4), COUNTS), (concurrent(8), COUNTS)])
    document["config"]["spec"] = spec(metrics={"slo": {"ttft_ms": 150.0, "tpot_ms": None}}, profile={"target_attainment": 0.95})
    probes = [
        {"streams": 2, "resolved": True, "aborted": False},
        {"streams": 4, "resolved": False},
        {"streams": 8, "resolved": True, "aborted": True},
    ]
    document["conclusions"] = [{"probes": probes, "best_passing_streams": 2, "stop_reason": "converged"}]
    contents = read(document)
    assert [stage.flags for _, stage in contents.stages] == [set(), {"weak"}, {"weak"}]
    hints = contents.stages[0][0].hints
    assert (hints["best_passing_streams"], hints["its_own_slo"], hints["share_to_attain"]) == ("2", "ttft_ms 150", "0.95")
    assert hints["replicas"] == "1"


def test_a_summary_that_another_script_made_is_refused() -> None:
    with pytest.raises(Unreadable, match="import GuideLLM's own JSON"):
        read({"benchmark_id": "1", "itl_mean_ms": 10.4, "request_latency_mean_ms": 2.33})


@pytest.mark.parametrize("generation", ["0.5.4", "0.8.1"])
def test_its_yaml_is_read_as_its_json(generation: str, tmp_path: Path) -> None:
    document = GENERATIONS[generation]([(concurrent(5), COUNTS)])
    file = tmp_path / "run.yaml"
    file.write_text(yaml.dump(json.loads(json.dumps(document))))
    assert read_file(file, "run.json").stages == read(document).stages


def test_errors_fail_a_stage_whose_latencies_are_fine() -> None:
    """guidellm issue 444: a third failed, and the percentiles are those of the rest."""
    counts = {"successful": 181, "errored": 83, "incomplete": 61}
    contents = read(GENERATIONS["0.5.4"]([(concurrent(2), COUNTS | {"errored": 0}), (concurrent(5), counts)]))
    (sweep,) = sweeps([contents])
    judged = judge(sweep, parse_slo("ttft p95 200"))
    assert judged.measured is not None and judged.measured.kind == "located"
    assert "31" in judged.why


# Hostile files

ODD = st.sampled_from([None, "x", -1, -0.5, 1e308, 10**400, True, [], {}, [[]], {"mean": "x"}, "NaN"])


@given(st.data())
def test_whatever_stands_in_a_field_is_read_or_refused(data: st.DataObject) -> None:
    generation = data.draw(st.sampled_from(list(GENERATIONS)))
    document = copy.deepcopy(GENERATIONS[generation]([(concurrent(5), COUNTS)]))
    for path in data.draw(st.lists(st.sampled_from(_paths(document)), max_size=6)):
        _put(document, path, data.draw(ODD))
    opened = Opened(where="run.json", shape="object", documents=[document])
    try:
        found = guidellm.read(opened).stages if guidellm.recognises(opened) else ()
    except Unreadable:
        return
    assert all(value > 0 for _, stage in found for value in (*stage.ttft_ms.values(), *stage.e2e_ms.values()))
    assert all((stage.tokens_per_second or 1) > 0 and (stage.errors or 0) >= 0 for _, stage in found)


def _paths(document: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    steps = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    return [path for step, value in steps for path in ((*above, step), *_paths(value, (*above, step)))]


def _put(document: Any, path: tuple[Any, ...], value: Any) -> None:
    """Where an earlier one took the place away, nothing."""
    with contextlib.suppress(KeyError, IndexError, TypeError):
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = copy.deepcopy(value)
