"""What cordoning a node would come to: which replicas move where, which go, which stay and why."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from capacity.domain import parse_snapshot
from capacity.domain.evacuation import MOST_PASSES, Evacuation, evacuation, opening, shares
from capacity.tests.builders import Document, fleet, measurement, model, node, profile, replica, snapshot
from capacity.tests.strategies import snapshots


def look(document: Document, name: str = "n1") -> Evacuation:
    found = evacuation(parse_snapshot(document), name)
    assert found is not None
    return found


def fates(document: Document, name: str = "n1") -> dict[str, tuple[str, str, tuple[str, ...]]]:
    return {move.replica: (move.fate, move.reason, move.nodes) for move in look(document, name).moves}


def busy(*nodes: str, load: int = 9, **overrides: Any) -> list[Document]:
    return [replica(f"r{number}", nodes=[name], in_flight=load, **overrides) for number, name in enumerate(nodes)]


def test_a_replica_that_the_rest_needs_is_started_elsewhere_before_it_goes():
    found = look(fleet(busy("n1", "n2"), nodes=[node("n1", 4), node("n2", 4)]))
    (move,) = found.moves
    assert (move.replica, move.fate, move.reason, move.nodes, move.to_profile) == ("r0", "moves", "evacuate", ("n2",), "p")
    assert (dict(found.freed), dict(found.held), found.is_settled) == ({"gpu/h100": 1}, {}, True)
    assert move.passes == 4  # started, ready, drained, gone


def test_a_replica_that_the_rest_can_do_without_goes_and_its_load_with_it():
    assert fates(fleet(busy("n1", "n2", load=3), nodes=[node("n1", 4), node("n2", 4)])) == {"r0": ("ends", "evacuate", ())}


def test_several_of_one_model_go_one_after_another_as_far_as_there_is_room():
    found = look(fleet(busy("n1", "n1", "n1", "n2"), nodes=[node("n1", 3), node("n2", 3)]))
    assert [move.fate for move in found.moves].count("moves") == 2
    (stays,) = [move for move in found.moves if move.fate == "stays"]
    assert stays.reason == "no_room" and "In the way" in stays.why
    assert (dict(found.freed), dict(found.held)) == ({"gpu/h100": 2}, {"gpu/h100": 1})


@pytest.mark.parametrize(
    ("chat", "reason"),
    [({"mode": "advise"}, "advise"), ({"mode": "add_only"}, "add_only"), ({"mode": "paused"}, "paused")],
)
def test_of_a_model_that_does_not_act_nothing_moves_and_its_mode_is_why(chat: dict[str, str], reason: str):
    found = look(fleet(busy("n1", "n2"), nodes=[node("n1", 4), node("n2", 4)], chat=chat))
    assert [(move.fate, move.reason) for move in found.moves] == [("stays", reason)]
    assert dict(found.held) == {"gpu/h100": 1}


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [({"removable": False}, "not_removable"), ({"in_flight": None}, "metrics_unknown")],
)
def test_what_may_not_be_stopped_or_is_not_known_stays(overrides: dict[str, Any], reason: str):
    document = fleet([replica("r0", **overrides), replica("r1", nodes=["n2"])], nodes=[node("n1"), node("n2")])
    assert fates(document)["r0"][:2] == ("stays", reason)


def test_what_drains_already_goes_and_what_starts_moves_once_it_is_ready():
    rows = [
        replica("d", state="draining"),
        replica("s", state="starting", since="2026-11-30T11:59:00Z", in_flight=None),
        *busy("n2"),
    ]
    found = {move.replica: move.fate for move in look(fleet(rows, nodes=[node("n1"), node("n2")])).moves}
    assert found == {"d": "ends", "s": "ends"}


def test_models_that_compete_for_the_last_room_are_served_by_the_plans_order():
    document = snapshot(
        nodes=[node("n1", 2), node("n2", 1)],
        models=[model("a"), model("b", priority=5)],
        profiles=[profile(model="a"), profile(model="b")],
        measurements=[measurement(model="a"), measurement(model="b")],
        replicas=[replica("ra", model="a", in_flight=5), replica("rb", model="b", in_flight=5)],
    )
    assert {name: fate for name, (fate, *_) in fates(document).items()} == {"ra": "stays", "rb": "moves"}


def test_a_node_without_replicas_or_that_is_not_there_moves_nothing():
    assert look(fleet(busy("n2"), nodes=[node("n1"), node("n2")])).moves == ()
    assert look(fleet(busy("n2"), nodes=[node("n2")]), "gone").moves == ()


@pytest.mark.parametrize("missing", ["nodes", "replicas"])
def test_what_cannot_be_read_cannot_be_told(missing: str):
    document = fleet(busy("n1")) | {missing: None}
    assert evacuation(parse_snapshot(document), "n1") is None
    assert opening(parse_snapshot(document), "n1") is None


def test_opening_a_node_says_what_becomes_free_and_what_would_start_there():
    cordoned = node("n2", 3, schedulable=False)
    found = opening(parse_snapshot(fleet(busy("n1", load=40), nodes=[node("n1", 1), cordoned])), "n2")
    assert found is not None
    assert dict(found.free) == {"gpu/h100": 3}
    assert [action.nodes for action in found.starts] == [("n2",)] * 3


@settings(max_examples=60)
@given(snapshots())
def test_any_fleet_ends_in_bounded_passes_and_each_replica_of_the_node_has_one_fate(document: Document):
    parsed = parse_snapshot(document)
    names = [n.name for n in parsed.nodes or ()]
    for name in names[:2]:
        found = evacuation(parsed, name)
        if found is None:
            continue
        here = sorted(r.name for r in parsed.replicas or () if name in r.nodes)
        assert [move.replica for move in found.moves] == here
        assert found.passes <= MOST_PASSES
        assert found.moving + found.ending + found.staying == len(here)
        assert all(name not in move.nodes for move in found.moves)
        assert all(move.reason for move in found.moves)


def test_shares_are_whole_and_come_to_the_load():
    assert shares(10, [1, 1, 2]) == [3, 2, 5]
    assert shares(3, [0, 0]) == [2, 1]
    assert shares(3, []) == []
