"""Registered engines: their state from answers, their units counted once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.observation.registered import Registration, standing, with_own_units
from capacity.observation.sights import KnownNode, Patience, sight
from capacity.ports import Answer, NodeReport

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PATIENCE = Patience(node_silent_seconds=30, node_lost_seconds=300)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def engine(name: str = "e1", units: int = 2, devices: tuple[str, ...] = (), **overrides) -> Registration:
    values = {"resource": "gpu/h100", "nodes": ("n1",), "state": "ready", "since": ago(900)}
    return Registration(**{**values, "name": name, "units": units, "devices": devices, **overrides})


def said(answered: float | None, failed: float | None) -> Answer:
    return Answer(
        answered_at=None if answered is None else ago(answered), failed_since=None if failed is None else ago(failed), reason=""
    )


@pytest.mark.parametrize(
    ("was", "answer", "expected"),
    [
        ("ready", said(5, None), ("ready", ago(900))),
        ("ready", said(44, 30), ("ready", ago(900))),  # a failure that has not lasted
        ("ready", said(45, 30), ("unready", ago(30))),  # since the first failure
        ("ready", said(-60, None), ("ready", ago(900))),  # our clock went back
        ("unready", said(300, 200), ("unready", ago(900))),  # it stays what it was, since then
        ("unready", said(5, None), ("ready", ago(5))),
        ("unready", said(None, 200), ("unready", ago(900))),
        ("ready", said(None, 1200), ("unready", ago(900))),  # never before it was registered
        ("ready", said(600, None), ("ready", ago(900))),  # nobody asks it any more: no failure
        ("ready", None, ("ready", ago(900))),
        ("unready", None, ("unready", ago(900))),
    ],
)
def test_it_is_ready_while_it_answers_and_unready_from_the_first_failure_on(was, answer, expected):
    assert standing(engine(state=was), answer, 45, NOW) == expected


def seen(rows, *, offered=6, foreign=2, ids=()):
    """(offered, foreign, foreign ids) as they are seen of a host that reports these."""
    report = NodeReport(
        node="n1",
        pool="p",
        at=NOW,
        resources={"gpu/h100": offered, "cpu": 32},
        foreign={"gpu/h100": foreign} if foreign else {},
        foreign_devices=dict.fromkeys(ids, "gpu/h100"),
    )
    node = KnownNode(name="n1", resources={}, reported_at=None)
    found = with_own_units({"n1": sight(node, report, PATIENCE, NOW)}, rows, {"n1": report})["n1"]
    return found.resources["gpu/h100"], found.foreign.get("gpu/h100", 0), sorted(found.foreign_devices)


@pytest.mark.parametrize(
    ("rows", "facts", "expected"),
    [
        # the host calls its two devices foreign: offered again, for the row takes them off
        ([engine()], {}, (8, 0, [])),
        # a third is somebody else's
        ([engine()], {"offered": 5, "foreign": 3}, (7, 1, [])),
        # it is down, nothing is foreign: its units were never left out
        ([engine()], {"offered": 8, "foreign": 0}, (8, 0, [])),
        # two engines, of which one is down
        ([engine("a"), engine("b")], {"offered": 6, "foreign": 2}, (8, 0, [])),
        # another class, another host
        ([engine(resource="cpu")], {}, (6, 2, [])),
        ([engine(nodes=("n2",))], {}, (6, 2, [])),
        # by device: only its own
        ([engine(devices=("A", "B"))], {"ids": ("A", "B")}, (8, 0, [])),
        ([engine(devices=("A", "B"))], {"offered": 5, "foreign": 3, "ids": ("A", "B", "C")}, (7, 1, ["C"])),
        ([engine(devices=("A", "B"))], {"ids": ("C", "D")}, (6, 2, ["C", "D"])),  # it is down, and these are not its
        ([engine(devices=("A", "B"))], {"offered": 7, "foreign": 1, "ids": ("A",)}, (8, 0, [])),
        # one with ids and one without
        ([engine("a", 1, ("A",)), engine("b", 1)], {"ids": ("A", "C")}, (8, 0, ["C"])),
        # ids that the host cannot name: by count
        ([engine(devices=("A", "B"))], {"ids": ()}, (8, 0, [])),
        # the whole class is foreign and so not offered at all
        ([engine(units=8)], {"offered": 0, "foreign": 8}, (8, 0, [])),
    ],
)
def test_its_units_are_taken_off_once(rows, facts, expected):
    assert seen(rows, **facts) == expected


@given(
    st.integers(0, 8), st.integers(0, 8), st.lists(st.tuples(st.integers(1, 4), st.sets(st.sampled_from("ABCDEFGH"))), max_size=4)
)
def test_no_unit_is_made_and_none_is_lost(offered, foreign, engines):
    ids = "ABCDEFGH"[:foreign]
    rows = [engine(str(number), units, tuple(sorted(devices))) for number, (units, devices) in enumerate(engines)]
    now_offered, now_foreign, _ = seen(rows, offered=offered, foreign=foreign, ids=ids)
    assert now_offered + now_foreign == offered + foreign
    assert offered <= now_offered <= offered + sum(row.units if not row.devices else len(row.devices) for row in rows)
