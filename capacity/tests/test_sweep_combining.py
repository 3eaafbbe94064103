"""Which stages make one sweep, and when two runs are one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capacity.domain.measurement.combine import sweeps
from capacity.domain.measurement.types import Contents, Setting

from .sweep_facts import SETTING, contents, stage, sweep


def apart(*settings: Setting) -> int:
    rows = tuple((setting, stage(4 + place)) for place, setting in enumerate(settings))
    return len(sweeps([Contents(stages=rows)]))


@pytest.mark.parametrize(
    "other",
    [
        {"tool": "other"},
        {"model": "n"},
        {"model": None},
        {"engine_version": "2"},
        {"hardware": "H100"},
        {"dataset": "sharegpt"},
        {"variant": "speculative decoding"},
    ],
)
def test_another_setting_is_another_sweep(other: dict[str, str | None]) -> None:
    assert apart(SETTING, replace(SETTING, **other)) == 2


def test_hints_part_nothing_and_all_of_them_are_kept() -> None:
    one, other = replace(SETTING, hints={"date": "1", "gpu": "H100"}), replace(SETTING, hints={"date": "2", "gpu": "H100"})
    (found,) = sweeps([contents([stage(4)], one), contents([stage(8)], other)])
    assert found.setting.hints == {"date": "1, 2", "gpu": "H100"}


@pytest.mark.parametrize(
    ("one", "other", "drawn", "expected"),
    [
        ((1000, 100), (1000, 100), False, 1),
        ((1000, 100), (1003, 100), False, 1),
        ((1000, 128), (1000, 256), False, 2),
        ((1000, 128), (2000, 128), False, 2),
        ((1000, None), (1000, 128), False, 2),
        ((4214, 154), (4098, 310), True, 1),
        ((128, 680), (2046, 533), True, 2),
        ((128, 30), (128, 680), True, 2),
    ],
)
def test_lengths_part_sweeps_and_drawn_ones_only_where_far_apart(
    one: tuple[int, int], other: tuple[int, int | None], drawn: bool, expected: int
) -> None:
    found = [replace(SETTING, input_tokens=pair[0], output_tokens=pair[1], drawn=drawn) for pair in (one, other)]
    assert apart(*found) == expected


def test_stages_are_sorted_by_level_and_those_without_come_last() -> None:
    found = sweep(stage(None), stage(16), stage(2), replace(stage(None), mean_in_flight=7.5))
    assert [row.mean_in_flight for row in found.stages] == [2, 7.5, 16, None]


def test_the_same_run_in_two_files_is_one() -> None:
    found = sweep(stage(4, where="run=0.json"), stage(4, where="summary.json, run 1"))
    assert [(row.where, row.flags) for row in found.stages] == [("run=0.json", frozenset())]


def test_one_run_as_json_and_as_rounded_csv_is_one_and_the_fuller_stays() -> None:
    whole = stage(4, None, ttft_ms={"p50": 30.1234, "p95": 96.3961, "p99": 97.7582}, tpot_ms={"p99": 8.8582})
    csv = stage(4, None, ttft_ms={"p50": 30.12, "p95": 96.4, "p99": 97.76}, tokens_per_second=400.02, errors=None)
    assert sweep(csv, whole).stages == (whole,)


def test_repeats_of_a_level_are_one_stage_by_the_worse_with_the_mean_rate() -> None:
    cold = stage(2, None, ttft_ms={"p95": 700, "p99": 762, "mean": 217}, tokens_per_second=90.0, seconds=1.4, where="run=0")
    warm = stage(2, None, ttft_ms={"p95": 40, "p99": 58}, tokens_per_second=200.0, seconds=2.0, errors=100, where="run=1")
    (found,) = sweep(cold, warm).stages
    assert found.ttft_ms == {"p95": 700, "p99": 762}
    assert (found.tokens_per_second, found.seconds, found.errors) == (145.0, 1.4, 100)
    assert (found.where, found.flags) == ("run=0, run=1", {"repeated"})


def test_what_cannot_be_is_unknown() -> None:
    found = sweep(
        stage(4, None, ttft_ms={"p95": 0.0, "p99": float("nan"), "max": 3.0, "p50": -1.0, "p90": 5.0}, seconds=float("inf"))
    )
    assert (found.stages[0].ttft_ms, found.stages[0].seconds) == ({"p90": 5.0}, None)
