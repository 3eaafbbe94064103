"""GuideLLM's files of all generations give the same stages, whatever form they have."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.bench.formats import guidellm
from capacity.bench.formats.contract import Opened, Unreadable
from capacity.bench.formats.guidellm.stages import LISTED
from capacity.domain.measurement.types import Contents, Stage

PERCENTILES = {"p001": 1, "p01": 2, "p05": 3, "p10": 4, "p25": 5, "p75": 70, "p90": 90, "p95": 95, "p99": 99, "p999": 999}
EMPTY = {"mean": 0.0, "median": 0.0, "percentiles": dict.fromkeys(PERCENTILES, 0.0)}
CANARY = "sk-canary-0000"


def _groups(scale: float, mean: float = 60.0) -> dict[str, Any]:
    """Successes as measured; the other groups hold what must never be taken."""
    found = {
        "mean": mean * scale,
        "median": 50 * scale,
        "percentiles": {name: value * scale for name, value in PERCENTILES.items()},
    }
    return {"successful": found, "errored": EMPTY, "incomplete": EMPTY, "total": {**found, "mean": 9e9}}


def _metrics(in_flight: float, rate: float) -> dict[str, Any]:
    return {
        "request_concurrency": _groups(1, in_flight),
        "request_latency": _groups(0.001),
        "time_to_first_token_ms": _groups(1),
        "inter_token_latency_ms": _groups(0.1),
        "time_per_output_token_ms": _groups(7),
        "output_tokens_per_second": _groups(1, rate),
        "tokens_per_second": _groups(1, 3 * rate),
        "prompt_token_count": _groups(1, 52.4),
        "output_token_count": _groups(1, 31.7),
    }


def _early(strategy: Mapping[str, Any], counts: Mapping[str, int], in_flight: float = 4.8) -> dict[str, Any]:
    """≤ 0.3: everything below `args`, counts beside the metrics, the model in the worker."""
    return {
        "args": {"strategy": dict(strategy)},
        "run_stats": {"requests_made": {"successful": 9999, "errored": 9999}},
        "worker": {"backend_model": "org/m", "backend_target": f"http://{CANARY}"},
        "request_loader": {"data": '{"prompt_tokens":64,"output_tokens":32}'},
        "metrics": _metrics(in_flight, 300.0),
        "request_totals": dict(counts),
        "requests": {"successful": [{"prompt": CANARY}]},
        "duration": 40.0,
    }


def _later(strategy: Mapping[str, Any], counts: Mapping[str, int], in_flight: float = 4.8) -> dict[str, Any]:
    """≥ 0.4: `config`, counts within the metrics; `requests_made` also counts warm-up and what was cut."""
    return {
        "config": {"strategy": {"worker_count": 10, "max_concurrency": 10240, **strategy}, "backend": {"model": "org/m"}},
        "scheduler_metrics": {"requests_made": {"successful": 9999, "errored": 9999}},
        "metrics": {"request_totals": dict(counts), **_metrics(in_flight, 300.0)},
        "requests": {"successful": [{"request_args": CANARY}]},
        "duration": 40.0,
        "warmup_duration": 5.0,
    }


def _spec(**more: Any) -> dict[str, Any]:
    backend = {"model": None, "api_key": CANARY, "target": f"http://{CANARY}"}
    return {"backend": backend, "data": [{"prompt_tokens": 64, "output_tokens": 32}], **more}


GENERATIONS = {
    "0.3": lambda items: {"benchmarks": [_early(*item) for item in items]},
    "0.4": lambda items: {
        "args": {"data": ["prompt_tokens=64,output_tokens=32"]},
        "benchmarks": [_later(*item) for item in items],
    },
    "0.5.4": lambda items: {
        "metadata": {"version": 1, "guidellm_version": "0.5.4"},
        "args": {"model": "org/m", "data": ["prompt_tokens=64,output_tokens=32"]},
        "benchmarks": [_later(*item) for item in items],
    },
    "0.8.1": lambda items: {
        "metadata": {"version": 2, "guidellm_version": "0.8.1"},
        "config": {"metadata": {"labels": {"replicas": 1}}, "spec": _spec()},
        "benchmarks": [_later(*item) for item in items],
        "conclusions": [],
    },
}
COUNTS = {"successful": 57, "errored": 3, "incomplete": 4, "total": 64}


def concurrent(streams: int) -> dict[str, Any]:
    return {"type_": "concurrent", "streams": streams}


def read(document: Any, shape: str = "object") -> Contents:
    opened = Opened(where="run.json", shape=shape, documents=document if shape == "csv" else [document])  # type: ignore[arg-type]
    assert guidellm.recognises(opened)
    return guidellm.read(opened)


def stages(document: Any, shape: str = "object") -> list[Stage]:
    return [stage for _, stage in read(document, shape).stages]


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
    document["benchmarks"][1]["metrics"]["prompt_token_count"] = _groups(1, 53.6)
    first, second = (setting for setting, _ in read(document).stages)
    assert first == second
    assert (first.input_tokens, first.output_tokens, first.dataset) == (53, 32, "chats.jsonl")


def test_its_own_search_for_the_limit_is_shown_and_what_it_left_open_is_weak() -> None:
    document = GENERATIONS["0.8.1"]([(concurrent(2), COUNTS), (concurrent(4), COUNTS), (concurrent(8), COUNTS)])
    document["config"]["spec"] = _spec(metrics={"slo": {"ttft_ms": 150.0, "tpot_ms": None}}, profile={"target_attainment": 0.95})
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


# The two kinds of CSV


def _early_csv(rows: int = 1) -> list[list[str]]:
    order = "[min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]"
    columns = {"Name": "poisson@1.60", "Duration": "40.0", "Successful Requests": "57", "Errored Requests": "3"}
    columns["Incomplete Requests"] = "4"
    for name, scale in {"Request latency": 0.001, "Time to first token ms": 1.0, "Inter token latency ms": 0.1}.items():
        columns |= {f"Successful {name} mean": str(60 * scale), f"Successful {name} median": str(50 * scale)}
        columns[f"Successful {name} {order}"] = json.dumps([value * scale for value in (0, 1, 2, 3, 4, 5, 70, 90, 95, 99, 500)])
    columns |= {"Successful Request concurrency mean": "4.8", "Successful Output tokens per second mean": "300.0"}
    columns["Args"] = json.dumps({"strategy": {"type_": "poisson", "rate": 1.6}})
    columns["Worker"] = json.dumps({"backend_model": "org/m", "backend_target": CANARY})
    columns["Request Loader"] = json.dumps({"data": "prompt_tokens=64,output_tokens=32"})
    return [list(columns), *[list(columns.values())] * rows]


def _later_csv(sizes: tuple[str, ...] = ("@2", "@4")) -> list[list[str]]:
    """As 0.8.1 writes it; a size of "" is what 0.5 writes, with the level in the profile."""
    profile = json.dumps({"completed_strategies": [{"streams": 2}, {"streams": 4}]})
    arguments = json.dumps({"spec": _spec()})
    fixed = {
        ("Run Info", "Run ID", ""): "1",
        ("Run Info", "Run Index", ""): "0",
        ("Run Info", "Profile", ""): profile,
        ("Run Info", "Backend", ""): json.dumps({"model": "org/m", "api_key": CANARY}),
        ("Benchmark", "Strategy", ""): "concurrent",
        ("Timings", "Duration", "Sec"): "40.0",
        ("Request Counts", "Successful", ""): "57",
        ("Request Counts", "Incomplete", ""): "4",
        ("Request Counts", "Errored", ""): "3",
        ("Server Throughput", "Successful Concurrency", "Mean"): "4.8",
        ("Token Throughput", "Successful Output Tokens/Sec", "Mean"): "300.0",
        ("Runtime Info", "Metadata", ""): json.dumps({"guidellm_version": "0.8.1"}),
        ("Runtime Info", "Arguments", ""): arguments,
    }
    for group, metric, scale in (
        ("Request Latency", "Successful Sec", 0.001),
        ("Time to First Token", "Successful ms", 1.0),
        ("Inter Token Latency", "Successful ms", 0.1),
    ):
        listed = [0, *(value * scale for value in (1, 2, 3, 4, 5, 70, 90, 95, 99)), 500]
        fixed |= {(group, metric, "Mean"): str(60 * scale), (group, metric, "Median"): str(50 * scale)}
        fixed[(group, metric, "Percentiles")] = json.dumps(listed)
    rows = [
        list((fixed | {("Run Info", "Run Index", ""): str(place), ("Benchmark", "Strategy", ""): f"concurrent{size}"}).values())
        for place, size in enumerate(sizes)
    ]
    return [*(list(heading) for heading in zip(*fixed, strict=True)), *rows]


def test_the_early_csv_is_read_by_the_order_that_its_heading_says() -> None:
    ((setting, stage),) = read(_early_csv(), "csv").stages
    assert (setting.model, setting.input_tokens, stage.mean_in_flight, stage.asked) == ("org/m", 64, 4.8, None)
    assert (stage.ttft_ms["p95"], stage.ttft_ms["p50"], stage.e2e_ms["p95"]) == (95, 50, pytest.approx(95))
    assert (stage.requests, stage.errors, stage.incomplete, stage.tokens_per_second) == (57, 3, 4, 300.0)


def test_a_cut_row_of_the_early_csv_is_listed() -> None:
    table = _early_csv(2)
    table[2] = table[2][:7]
    contents = read(table, "csv")
    assert len(contents.stages) == 1 and "cut off" in contents.skipped[0].why


@pytest.mark.parametrize("sizes", [("@2", "@4"), ("", "")], ids=["0.8", "0.5"])
def test_the_later_csv_equals_the_json_of_the_same_run(sizes: tuple[str, ...]) -> None:
    """Equal but for where they stand, so that both files together are one sweep."""
    document = GENERATIONS["0.8.1"]([(concurrent(2), COUNTS), (concurrent(4), COUNTS)])
    for table, plain in zip(read(_later_csv(sizes), "csv").stages, read(document).stages, strict=True):
        assert table[0] == plain[0]
        assert _figures(table[1]) == _figures(plain[1])


def _figures(stage: Stage) -> tuple[Any, ...]:
    counted = (stage.asked, stage.mean_in_flight, stage.requests, stage.errors, stage.incomplete, stage.seconds, stage.flags)
    return (*counted, stage.tokens_per_second, stage.ttft_ms, stage.tpot_ms, stage.e2e_ms)


@pytest.mark.parametrize("shift", [["", ""], []], ids=["more cells than headings", "as many, but shifted"])
def test_a_shifted_row_is_skipped_with_a_hint_at_the_json(shift: list[str]) -> None:
    table = _later_csv()
    table[4] = [*table[4][:5], *shift, "0", *table[4][5:]][: None if shift else len(table[4])]
    contents = read(table, "csv")
    assert [stage.asked for _, stage in contents.stages] == [2]
    assert "row 5" in contents.skipped[0].where and "import the JSON" in contents.skipped[0].why


def test_a_table_without_one_fitting_row_is_refused() -> None:
    table = _later_csv(("@2",))
    table[3] = [*table[3], "1"]
    with pytest.raises(Unreadable, match="import the JSON"):
        read(table, "csv")


def test_the_order_of_a_cell_of_percentiles_is_fixed() -> None:
    assert LISTED == ("min", "p001", "p1", "p5", "p10", "p25", "p75", "p90", "p95", "p99", "max")


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
    for step in path[:-1]:
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(document, dict | list) and (isinstance(document, dict) or len(document) > path[-1]):
        document[path[-1]] = value
