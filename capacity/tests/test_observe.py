"""What the hosts report, laid over what is known."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from capacity.observation.observe import Known, Observed, observe
from capacity.observation.sights import KnownNode, Patience
from capacity.ports import NodeReport, ReplicaReport

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PATIENCE = Patience(node_silent_seconds=30, node_lost_seconds=300)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def row(name: str = "r1", **overrides) -> Known:
    values = {
        "name": name,
        "model": "chat",
        "profile": "h",
        "nodes": ("n1",),
        "state": "ready",
        "since": ago(100),
        "was_seen": True,
    }
    return Known(**{**values, **overrides})


def reported(name: str = "r1", state: str = "ready", **overrides) -> ReplicaReport:
    values = {
        "name": name,
        "model": "chat",
        "profile": "h",
        "nodes": ("n1",),
        "resource": "sim",
        "units": 1,
        "state": state,
        "since": ago(50),
    }
    return ReplicaReport(**{**values, **overrides})


def report(*replicas: ReplicaReport, at: float = 1) -> NodeReport:
    return NodeReport(node="n1", pool="p", at=ago(at), resources={"sim": 8}, replicas=replicas)


def look(rows=(), reports=(), node_reported: float | None = None) -> Observed:
    node = KnownNode(name="n1", resources={"sim": 8}, reported_at=None if node_reported is None else ago(node_reported))
    return observe(list(rows), [node], list(reports), [("chat", "h")], PATIENCE, NOW)


def test_a_reported_replica_has_the_state_that_its_host_says():
    seen = look([row(state="starting", intent="")], [report(reported())])
    assert [(r.name, r.state, r.since) for r in seen.present] == [("r1", "ready", ago(50))]


def test_an_unknown_running_replica_of_a_known_model_is_adopted():
    assert [r.name for r in look([], [report(reported())]).present] == ["r1"]


def test_a_replica_of_an_unknown_model_is_left_alone_and_its_units_are_not_offered():
    seen = look([], [report(reported(model="ghost", units=3))])
    assert not seen.present
    assert seen.nodes["n1"].resources == {"sim": 5}
    assert seen.problems[0]["code"] == "invalid_row"


def test_a_start_that_was_recorded_counts_before_its_host_has_seen_it():
    fresh = row(state="starting", since=ago(3), intent="start", intent_at=ago(3), was_seen=False)
    seen = look([fresh], [report(at=1)])
    assert [(r.state, r.intent, r.reported) for r in seen.present] == [("starting", "start", False)]


def test_a_start_that_never_came_up_is_forgotten_as_a_failed_one():
    old = row(state="starting", since=ago(120), intent="start", intent_at=ago(120), was_seen=False)
    assert [(g.name, g.failed_start) for g in look([old], [report(at=1)]).gone] == [("r1", True)]
    assert [(g.name, g.failed_start) for g in look([old], []).gone] == [("r1", True)]


@pytest.mark.parametrize("intent", ["drain", "cancel"])
def test_a_drain_that_was_recorded_counts_at_once_and_is_asked_for_again(intent):
    seen = look([row(intent=intent, intent_at=ago(4))], [report(reported())])
    assert [(r.state, r.since, r.intent) for r in seen.present] == [("draining", ago(4), intent)]


def test_a_drain_that_its_host_has_begun_is_not_asked_for_again():
    seen = look([row(intent="drain", intent_at=ago(9))], [report(reported(state="draining"))])
    assert [(r.state, r.intent) for r in seen.present] == [("draining", "")]


def test_an_undrain_that_was_recorded_counts_as_ready():
    seen = look([row(state="draining", intent="undrain", intent_at=ago(2))], [report(reported(state="draining"))])
    assert [(r.state, r.intent) for r in seen.present] == [("ready", "undrain")]


def test_an_exit_nobody_asked_for_is_told_from_a_failed_start_and_from_a_drain():
    rows = [row("a"), row("b", state="starting"), row("c", intent="drain"), row("d", state="draining")]
    exits = [
        reported("a", "exited", was_ready=True),
        reported("b", "exited"),
        reported("c", "exited", was_ready=True),
        reported("d", "exited", was_ready=True),
    ]
    gone = {g.name: (g.failed_start, g.exited) for g in look(rows, [report(*exits)]).gone}
    assert gone == {"a": (False, True), "b": (True, False), "c": (False, False), "d": (False, False)}


def test_an_exit_says_how_and_one_that_was_asked_for_says_nothing():
    killed = replace(reported("a", "exited", was_ready=True), exit_code=-9, message="Serving.")
    asked = replace(reported("b", "exited", was_ready=True), exit_code=-15, message="Bye.")
    gone = {g.name: g.message for g in look([row("a"), row("b", intent="drain")], [report(killed, asked)]).gone}
    assert gone == {"a": "killed by signal 9 (SIGKILL), last words: Serving.", "b": ""}


def test_a_replica_that_its_host_no_longer_reports_is_gone_and_no_failure():
    gone = look([row()], [report(at=1)]).gone
    assert [(g.name, g.failed_start, g.exited) for g in gone] == [("r1", False, False)]


def test_a_report_older_than_the_request_says_nothing_of_it():
    asked = row(intent="drain", intent_at=ago(1))
    assert [r.state for r in look([asked], [report(at=2)]).present] == ["draining"]


def test_a_silent_host_offers_no_room_and_keeps_its_replicas_as_they_were():
    seen = look([row()], [report(reported(), at=30)])
    assert (seen.nodes["n1"].is_ready, seen.problems[0]["code"]) == (False, "node_silent")
    assert [(r.state, r.is_silent) for r in seen.present] == [("ready", True)]
    assert look([row()], [report(reported(), at=29.9)]).nodes["n1"].is_ready


def test_a_silent_host_whose_report_was_lost_keeps_its_rows():
    seen = look([row()], [], node_reported=100)
    assert [(r.name, r.is_silent) for r in seen.present] == [("r1", True)]


def test_a_lost_host_is_left_out_and_named():
    seen = look([row(), row("r2")], [report(reported(), at=300)])
    assert (seen.present, seen.gone, seen.lost) == ((), (), ("r1", "r2"))
    assert seen.problems[0]["code"] == "node_lost"


def test_what_runs_on_a_host_that_comes_back_is_there_again():
    assert [r.name for r in look([row()], [report(reported(), at=2)]).present] == ["r1"]


@pytest.mark.parametrize("asked", ["", "drain", "undrain"])
def test_what_runs_under_an_old_name_of_its_model_or_profile_is_what_its_row_says(asked):
    """A host goes on with the names of the start; a rename must not hide what runs, nor start it a second time."""
    seen = look([row(intent=asked, intent_at=ago(5) if asked else None)], [report(reported(model="old", profile="older"))])
    assert [(r.name, r.model, r.profile) for r in seen.present] == [("r1", "chat", "h")]
    assert not seen.problems and seen.nodes["n1"].resources == {"sim": 8}


def test_a_host_whose_clock_is_far_ahead_is_silent_and_never_lost():
    """Its last report would else vouch for it for as long as its clock is wrong, whether it runs or not."""
    seen = look([row()], [report(reported(), at=-1000)])
    assert (seen.nodes["n1"].is_ready, seen.nodes["n1"].is_lost) == (False, False)
    assert [r.is_silent for r in seen.present] == [True]
    assert [(p["code"], "its clock is ahead" in p["detail"]) for p in seen.problems] == [("node_silent", True)]


def test_a_clock_a_little_ahead_is_no_silence():
    assert look([], [report(at=-5)]).nodes["n1"].is_ready
