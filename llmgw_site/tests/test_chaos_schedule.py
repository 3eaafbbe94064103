"""Schedules of faults: drawn from a seed, the same each time, and every kind has its turn."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmgw_site.tests.chaos.faults import Faults
from llmgw_site.tests.chaos.report import document, table, verdict, write
from llmgw_site.tests.chaos.run import Result
from llmgw_site.tests.chaos.schedule import KINDS, LONG_EACH, Fault, schedule

SEEDS = st.integers(0, 10**6)


@given(seed=SEEDS, number=st.integers(0, 1000))
def test_a_schedule_is_the_same_whenever_it_is_drawn_and_hurts_nothing_twice(seed, number):
    found = schedule(seed, number)
    assert found == schedule(seed, number)
    assert 1 <= len(found.faults) <= 6
    assert len({fault.target for fault in found.faults}) == len(found.faults)
    assert [fault.after for fault in found.faults] == sorted(fault.after for fault in found.faults)


@given(seed=SEEDS)
def test_every_kind_has_its_turn_and_long_waits_are_rare(seed):
    drawn = [schedule(seed, number) for number in range(len(KINDS) * 2)]
    assert {fault.kind for found in drawn for fault in found.faults} - {"pause_pass"} == set(KINDS)
    long = [found.number for found in drawn if any(fault.seconds > 30 for fault in found.faults)]
    assert all(number % LONG_EACH == LONG_EACH - 1 for number in long)
    assert long, "a lease that is over, a host that is lost"


def test_every_kind_can_be_done():
    assert set(Faults.__new__(Faults)._acts()) == {*KINDS, "pause_pass"}


def broken() -> Result:
    result = Result(seed=7, looks=12)
    result.faults = Counter({"kill": 2, "cut": 1})
    result.recovery_passes = {0: 3, 1: 11}
    result.violations = [(1, "a runs 2 times (at 5.0)")]
    return result


def test_the_report_says_how_to_run_a_failing_schedule_again(tmp_path: Path):
    text = table(broken())
    assert "seed 7: 2 schedules, 3 faults (cut 1, kill 2)" in text
    assert "longest way back to rest: 11 passes" in text
    assert "schedule 1: a runs 2 times" in text
    assert text.endswith("again: make chaos SEED=7 ONLY=1")
    write(broken(), tmp_path / "var" / "chaos.json")
    assert json.loads((tmp_path / "var" / "chaos.json").read_text()) == document(broken())


def test_the_last_line_is_the_verdict():
    assert verdict(broken()) == "1 violation in 2 schedules: see above for which rules were broken."
    held = broken()
    held.violations = []
    assert verdict(held) == "All rules held in 2 schedules."


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (Fault(kind="kill_engine", target="engine-909", after=1.0, value=0.612), " 1.0 s  kill_engine an engine"),
        (Fault(kind="pause_engine", target="engine-1", after=1.0, seconds=2.0), " 1.0 s  pause_engine an engine for 2.0 s"),
        (Fault(kind="kill_child", target="web", after=1.0, value=0.2), " 1.0 s  kill_child of web"),
        (
            Fault(kind="cut", target="host-3", after=1.0, seconds=3.9, value=True),
            " 1.0 s  cut host-3 for 3.9 s, Redis forgets its connections",
        ),
        (Fault(kind="clock", target="host-1", after=1.0, seconds=2.0, value=-45.0), " 1.0 s  clock host-1 for 2.0 s, by -45 s"),
        (Fault(kind="edit_limit", target="limit", after=1.0, value={"limit": 3}), " 1.0 s  edit_limit limit: limit 3"),
        (Fault(kind="kill_pass", target="pass", after=1.0), " 1.0 s  kill_pass pass"),
    ],
)
def test_a_fault_is_a_line_that_can_be_read(fault, line):
    assert str(fault) == line


def test_a_run_without_a_schedule_has_no_longest_way_back():
    assert document(Result(seed=1))["longest_recovery_passes"] is None
