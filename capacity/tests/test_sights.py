"""How old a host's word is: by our clock, whatever its own says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.models import Node, Pass, Replica
from capacity.observation.sights import KnownNode, NodeSight, Patience, node_problem, sight
from capacity.ports import NodeReport
from capacity.tests.fleet import Fleet

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PATIENCE = Patience(node_silent_seconds=30, node_lost_seconds=300)
HOUR = 3600


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def seen(reported: float | None, own: float | None, heard: float | None) -> NodeSight:
    """A report as of `reported` s ago; the row: the last one was as of `own` s ago by the host, heard `heard` s ago by us."""
    node = KnownNode(
        name="n1",
        resources={"sim": 8},
        reported_at=None if heard is None else ago(heard),
        host_clock_at=None if own is None else ago(own),
    )
    report = None if reported is None else NodeReport(node="n1", pool="p", at=ago(reported), resources={"sim": 8})
    return sight(node, report, PATIENCE, NOW)


@pytest.mark.parametrize(
    ("reported", "own", "heard", "expected"),
    [
        (2, 17, 17, "ready"),
        (-5, 10, 10, "ready"),  # a little ahead
        (29, 29, 29, "ready"),
        (30, 30, 30, "silent"),  # no news
        (299, 299, 299, "silent"),
        (300, 300, 300, "lost"),
        (None, None, 301, "lost"),  # its report is gone from the store
        (None, None, None, "ready"),  # typed in
        # the host's clock was set an hour back, or ours an hour ahead: it still reports
        (HOUR, 10, 10, "silent"),
        (HOUR, HOUR + 15, 15, "silent"),
        (HOUR, HOUR, 299, "silent"),  # and then no more
        (HOUR, HOUR, 300, "lost"),
        # the host's clock was set an hour ahead, or ours an hour back
        (-HOUR, 10, 10, "silent"),
        (-HOUR, -HOUR + 15, 15, "silent"),
        (-HOUR, -HOUR, 300, "lost"),
        (-HOUR + 5, -HOUR, -HOUR, "silent"),  # ours went back since it was last heard
        # back to the right time
        (3, HOUR, 15, "ready"),
        (3, -HOUR, 15, "ready"),
        # heard of for the first time, long ago
        (400, None, None, "lost"),
        # reported while no pass was made: waited for once more
        (400, 900, 900, "silent"),
        # written by an older version: its own time stood in our column
        (300, None, 300, "lost"),
    ],
)
def test_ages_are_told_by_our_clock(reported, own, heard, expected):
    found = seen(reported, own, heard)
    said = "ready" if found.is_ready else "lost" if found.is_lost else "silent"
    assert said == expected
    problem = node_problem(found, NOW)
    assert (problem["code"] if problem else "") == {"ready": "", "silent": "node_silent", "lost": "node_lost"}[expected]


@pytest.mark.parametrize(("reported", "word"), [(HOUR, "behind"), (-HOUR, "ahead")])
def test_a_clock_that_is_off_is_named(reported, word):
    problem = node_problem(seen(reported, reported + 15, 15), NOW)
    assert problem and f"its clock is {word}" in problem["detail"] and "left alone" in problem["detail"]


OFF = st.integers(-5 * HOUR, 5 * HOUR)


@given(st.lists(OFF, min_size=1, max_size=30), st.lists(OFF, min_size=30, max_size=30))
def test_a_host_that_reports_before_each_pass_is_never_lost_however_both_clocks_are_set(theirs, ours):
    node = KnownNode(name="n1", resources={}, reported_at=NOW, host_clock_at=NOW)
    for number, (their_off, our_off) in enumerate(zip(theirs, ours, strict=False), start=1):
        true = NOW + timedelta(seconds=15 * number, microseconds=number)
        report = NodeReport(node="n1", pool="p", at=true + timedelta(seconds=their_off), resources={})
        found = sight(node, report, PATIENCE, true + timedelta(seconds=our_off))
        assert not found.is_lost
        node = KnownNode(name="n1", resources={}, reported_at=found.reported_at, host_clock_at=found.host_clock_at)


def codes() -> set[str]:
    """What the newest pass says of nodes."""
    return {p["code"] for p in Pass.objects.latest("at").problems if p["subject"].startswith("node:")}


@pytest.mark.django_db
@pytest.mark.parametrize("off", [HOUR, -HOUR])
def test_a_hosts_clock_that_is_set_kills_nothing_starts_nothing_and_is_forgiven(off):
    fleet = Fleet(min_replicas=1)
    Node.objects.create(name="n2", pool=fleet.pool, resources={"sim": 8})
    fleet.a_pass()
    fleet.passes(2)
    fleet.fake.set_clock("n1", off)
    fleet.passes(30)
    assert codes() == {"node_silent"}
    assert Replica.objects.count() == 1
    fleet.fake.set_clock("n1", 0)
    fleet.passes(1)
    assert codes() == set()
    assert Replica.objects.get().state == "ready"
