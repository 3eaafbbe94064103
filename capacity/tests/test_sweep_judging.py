"""From a sweep to a measurement: each rule by an example."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from capacity.domain.measurement.judge import judge
from capacity.domain.measurement.level import error_share, level, whole_level
from capacity.domain.measurement.slo_text import parse_slo
from capacity.domain.measurement.types import Judgement, Slo, Stage

from .sweep_facts import TTFT, stage, sweep


def judged(*stages: Stage, slo: Slo | None = TTFT, replicas: int = 1) -> Judgement:
    return judge(sweep(*stages), slo, replicas)


def short(judgement: Judgement) -> tuple[Any, ...] | None:
    found = judgement.measured
    return None if found is None else (found.max_concurrency, found.tokens_per_second, found.kind)


def flags_of(judgement: Judgement) -> list[list[str]]:
    return [sorted(found.flags) for found in judgement.sweep.stages]


@pytest.mark.parametrize(
    ("asked", "mean", "expected", "whole"),
    [
        (16, 15.3, 16.0, 16),
        (64, 57.6, 64.0, 64),
        (64, 57.5, 57.5, 58),
        (32, 28.4, 28.4, 28),
        (8, None, 8.0, 8),
        (None, 4.65, 4.65, 5),
        (None, 0.3, 0.3, 1),
        (None, 22.5, 22.5, 23),
        (2, 9.6, 9.6, 2),
        (None, None, None, None),
    ],
)
def test_the_level_is_the_setting_near_it_and_else_the_mean(
    asked: int | None, mean: float | None, expected: float | None, whole: int | None
) -> None:
    found = Stage(where="f", asked=asked, mean_in_flight=mean)
    assert (level(found), whole_level(found)) == (expected, whole)


@pytest.mark.parametrize(
    ("requests", "errors", "expected"), [(99, 1, 0.01), (181, 83, 83 / 264), (None, 1, None), (5, None, None), (0, 0, None)]
)
def test_the_share_of_errors_is_of_what_is_over(requests: int | None, errors: int | None, expected: float | None) -> None:
    assert error_share(Stage(where="f", requests=requests, errors=errors, incomplete=50)) == expected


@pytest.mark.parametrize(
    ("stages", "expected", "said"),
    [
        ([stage(4, 100), stage(8, 150), stage(16, 300)], (8, 800, "located"), "16 in flight, misses it: TTFT p95 300 ms is over"),
        ([stage(4, 100), stage(8, 200)], (8, 800, "at_least"), "nothing above was measured"),
        ([stage(4, 200.04), stage(8, 250)], (0, 400, "never_met"), "The lowest level, 4 in flight, misses ttft p95 200"),
        ([stage(4, 300), stage(8, 100)], (0, 400, "never_met"), "8 in flight above a missed level does not count"),
        ([stage(4), stage(8, 300), stage(16), stage(32, 300)], (4, 400, "located"), "16 in flight above a missed level"),
        ([stage(4), stage(8, None, ttft_ms={"p99": 150})], (8, 800, "at_least"), "TTFT p99 150 ms"),
        ([stage(4), stage(8, None, ttft_ms={"p99": 250})], (4, 400, "at_least"), "at 8 in flight, TTFT p95 is not in the file"),
        ([stage(4), stage(8, None, ttft_ms={"mean": 9, "p50": 9, "p90": 999})], (4, 400, "at_least"), "TTFT p95 is not in the"),
        ([stage(4, None, ttft_ms={"p90": 9}), stage(8)], None, "Nothing is proven at the lowest level, 4 in flight: TTFT p95"),
        ([stage(4), stage(8, errors=11, requests=989)], (4, 400, "located"), "11 of 1000 requests failed (1.1 %), over 1 %"),
        ([stage(4), stage(8, errors=10, requests=990)], (8, 800, "at_least"), "nothing above"),
        ([stage(4, errors=None)], (4, 400, "at_least"), "nothing above"),
        ([stage(4, incomplete=900)], (4, 400, "at_least"), "nothing above"),
        ([stage(4, errors=8, requests=0)], None, "No request succeeded"),
        ([stage(4, None)], None, "no latency in it"),
        ([stage(None)], None, "No stage says how many requests were in flight"),
        (
            [stage(None, 900), stage(4)],
            (4, 400, "at_least"),
            "nothing above was measured; 1 stage without a known level does not",
        ),
        ([stage(4, tokens_per_second=None)], None, "does not say its output tokens per second"),
        ([stage(16, mean_in_flight=12.4)], (12, 1600, "at_least"), "12.4 in flight meets"),
    ],
)
def test_the_highest_level_that_meets_it_with_every_lower_one(
    stages: list[Stage], expected: tuple[Any, ...] | None, said: str
) -> None:
    found = judged(*stages)
    assert (short(found), said in found.why) == (expected, True), found.why


@pytest.mark.parametrize(
    ("stages", "flags"),
    [
        ([stage(4, seconds=29.9)], [["weak"]]),
        ([stage(4, requests=11)], [["weak"]]),
        ([stage(4, requests=12, seconds=30)], [[]]),
        ([stage(4, requests=None, seconds=None)], [[]]),
        ([stage(4, mean_in_flight=None)], [["asked"]]),
        ([stage(4, errors=None)], [["errors_unknown"]]),
        ([stage(4, errors=500)], [["errors"]]),
        ([stage(4, 300), stage(8)], [[], ["non_monotonic"]]),
        ([stage(4, flags=frozenset({"simulated", "non_monotonic"}))], [["simulated"]]),
    ],
)
def test_a_stage_says_what_is_doubtful_about_it(stages: list[Stage], flags: list[list[str]]) -> None:
    assert flags_of(judged(*stages)) == flags


def test_every_bound_counts() -> None:
    slo = parse_slo("ttft p95 200, tpot p99 20")
    stages = [stage(4, tpot_ms={"p99": 20.0}), stage(8, tpot_ms={"p99": 20.1})]
    assert short(judged(*stages, slo=slo)) == (4, 400, "located")
    assert "TTFT p95 100 ms, TPOT p99 20 ms" in judged(*stages, slo=slo).why


def test_a_missed_bound_decides_where_another_is_not_in_the_file() -> None:
    found = judged(stage(4, 300), slo=parse_slo("ttft p95 200, tpot p99 20"))
    assert short(found) == (0, 400, "never_met")


def test_without_an_slo_it_is_a_curve() -> None:
    found = judged(stage(4), slo=None)
    assert (found.measured, found.why) == (None, "No SLO was given, so this is a curve and no measurement.")


@pytest.mark.parametrize(
    ("replicas", "expected"), [(1, (5, 500, "at_least")), (2, (2, 250, "at_least")), (5, (1, 100, "at_least")), (6, None)]
)
def test_both_numbers_are_divided_by_the_replicas_and_rounded_down(replicas: int, expected: tuple[Any, ...] | None) -> None:
    found = judged(stage(5), replicas=replicas)
    assert short(found) == expected
    assert expected is None or replicas == 1 or f"divided by {replicas} replicas" in found.why


@pytest.mark.parametrize("replicas", [0, -1, 10_001])
def test_no_replica_is_refused(replicas: int) -> None:
    with pytest.raises(ValueError, match="from 1 to"):
        judged(stage(5), replicas=replicas)


def test_of_two_stages_of_one_level_the_worse_decides() -> None:
    by_rate = replace(stage(None, 300), mean_in_flight=8.0)
    assert short(judged(stage(4), stage(8), by_rate)) == (4, 400, "located")


def test_the_chosen_stage_is_one_of_the_sweep_with_its_flags() -> None:
    found = judged(stage(4, seconds=5), stage(8, 300))
    assert found.chosen is found.sweep.stages[0]
    assert found.chosen.flags == {"weak"}


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ([stage(1, requests=1), stage(2, requests=1)], "; 2 of 2 levels are weak: 1 request each."),
        ([stage(1, requests=1), stage(2, requests=2), stage(4)], "; 2 of 3 levels are weak: 1 to 2 requests each."),
        ([stage(1, seconds=10), stage(2, seconds=10)], "; 2 of 2 levels are weak: 10 seconds each."),
        ([stage(1, requests=1), stage(2, seconds=10)], "; 2 of 2 levels are weak."),
        ([stage(1)], "nothing above was measured."),
    ],
)
def test_the_sentence_counts_the_weak_levels_and_says_what_they_have_too_little_of(stages, said):
    assert judge(sweep(*stages), TTFT).why.endswith(said)
