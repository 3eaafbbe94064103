"""Reports that cannot be so, replicas and cores that two hosts report at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.models import Pass
from capacity.observation.observe import Known, Observed, observe
from capacity.observation.sights import KnownNode, Patience
from capacity.ports import DeviceReport, NodeReport, ReplicaReport
from capacity.tests.fleet import Fleet

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PATIENCE = Patience(node_silent_seconds=30, node_lost_seconds=300)


def replica(name: str = "r1", state: str = "ready", **overrides) -> ReplicaReport:
    given = {"model": "chat", "profile": "h", "nodes": ("n1",), "resource": "sim", "units": 2, "since": NOW}
    return ReplicaReport(name=name, state=state, **{**given, **overrides})


def report(node: str, *replicas: ReplicaReport, seconds_ago: float = 1, **overrides) -> NodeReport:
    given = {"resources": {"sim": 8}, "at": NOW - timedelta(seconds=seconds_ago), **overrides}
    return NodeReport(node=node, pool="p", replicas=replicas, **given)


def row(name: str = "r1", node: str = "n1") -> Known:
    return Known(name=name, model="chat", profile="h", nodes=(node,), state="ready", since=NOW, was_seen=True)


def look(*reports: NodeReport, rows: tuple[Known, ...] = ()) -> Observed:
    nodes = [KnownNode(name=name, resources={}, reported_at=None) for name in sorted({r.node for r in reports})]
    return observe(rows, nodes, reports, [("chat", "h")], PATIENCE, NOW)


def codes(seen: Observed) -> list[tuple[str, str]]:
    return [(problem["code"], problem["subject"]) for problem in seen.problems]


# --- numbers ---------------------------------------------------------------------------------------------------------
def test_a_class_of_more_units_than_any_host_has_is_none_and_the_rest_stands():
    seen = look(report("n1", resources={"sim": 8, "gpu/h100": 10**12}))
    assert seen.nodes["n1"].resources == {"sim": 8}
    assert codes(seen) == [("invalid_report", "node:n1")]
    assert "1000000000000 of gpu/h100" in seen.problems[0]["detail"]


def test_a_replica_of_millions_of_units_is_named_and_still_there():
    seen = look(report("n1", replica(units=5_000_000)), rows=(row(),))
    assert [r.name for r in seen.present] == ["r1"]
    assert codes(seen) == [("invalid_report", "node:n1")]


def test_a_product_that_the_table_does_not_have_is_named():
    seen = look(report("n1", unknown_products=("GeForce GTX 980",)))
    assert codes(seen) == [("unknown_product", "node:n1")]
    assert "gpu/geforce-gtx-980" in seen.problems[0]["detail"]


# --- one replica, two hosts ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("owner", "other"), [("n1", "n2"), ("n2", "n1")])
def test_a_replica_that_two_hosts_report_is_one_on_the_host_of_its_row_and_offered_on_neither(owner, other):
    here, there = replica(nodes=(owner,)), replica(nodes=(other,))
    seen = look(report(other, there), report(owner, here), rows=(row(node=owner),))
    assert [(r.name, r.nodes) for r in seen.present] == [("r1", (owner,))]
    assert seen.gone == ()
    assert (seen.nodes[owner].resources, seen.nodes[other].resources) == ({"sim": 8}, {"sim": 6})
    assert codes(seen) == [("reported_twice", "replica:r1")]
    assert f"{owner}, {other}" in seen.problems[0]["detail"]


def test_where_the_host_of_its_row_is_lost_the_other_one_counts():
    seen = look(report("n1", replica(), seconds_ago=400), report("n2", replica(nodes=("n2",))), rows=(row(node="n1"),))
    assert [r.nodes for r in seen.present] == [("n2",)]


def test_an_exited_copy_is_no_second_one():
    seen = look(report("n1", replica(state="exited")), report("n2", replica(nodes=("n2",))), rows=(row(node="n2"),))
    assert ([r.nodes for r in seen.present], seen.gone, codes(seen)) == ([("n2",)], (), [])


def test_a_replica_over_two_hosts_is_one_and_no_problem():
    spanning = replica(nodes=("n1", "n2"))
    seen = look(report("n1", spanning), report("n2", spanning), rows=(row(),))
    assert [r.nodes for r in seen.present] == [("n1", "n2")]
    assert codes(seen) == []


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["n1", "n2", "n3"]), st.sampled_from(["ready", "exited"])), max_size=8
    )
)
def test_whoever_reports_a_replica_is_counted_once_or_gone_once(told):
    by_node: dict[str, dict[str, ReplicaReport]] = {"n1": {}, "n2": {}, "n3": {}}
    for name, node, state in told:
        by_node[node][name] = replica(name, state, nodes=(node,))
    reports = [report(node, *rows.values()) for node, rows in by_node.items()]
    seen = look(*reports, rows=(row("a", "n1"), row("b", "n2")))
    names = [r.name for r in seen.present] + [r.name for r in seen.gone]
    assert sorted(names) == ["a", "b"]


# --- one machine, several workers ------------------------------------------------------------------------------------
def on_machine(node: str, cpu: int, machine: str = "m", cores: str = "8") -> NodeReport:
    return report(node, resources={"cpu": cpu}, shown={"machine": machine, "cores": cores})


def test_cores_of_one_machine_count_once():
    seen = look(on_machine("n2", 8), on_machine("n1", 8))
    assert {name: node.resources for name, node in seen.nodes.items()} == {"n1": {"cpu": 8}, "n2": {"cpu": 0}}
    assert codes(seen) == [("shared_machine", "node:n1")]


def with_devices(node: str, *ids: str, foreign: tuple[str, ...] = (), machine: str = "m") -> NodeReport:
    """Devices of one class, of which the foreign ones are not offered."""
    return report(
        node,
        resources={"gpu/l4": len(ids) - len(foreign)},
        devices=tuple(DeviceReport(id=one, resource="gpu/l4") for one in ids),
        foreign_devices=dict.fromkeys(foreign, "gpu/l4"),
        shown={"machine": machine},
    )


def test_devices_of_one_machine_count_once():
    seen = look(with_devices("n2", "a", "b", "c"), with_devices("n1", "a", "b"))
    assert {name: node.resources for name, node in seen.nodes.items()} == {"n1": {"gpu/l4": 2}, "n2": {"gpu/l4": 1}}
    assert codes(seen) == [("shared_machine", "node:n2")]


def test_a_device_that_is_foreign_to_the_next_worker_is_taken_off_once():
    seen = look(with_devices("n1", "a", "b"), with_devices("n2", "a", "b", foreign=("a",)))
    assert seen.nodes["n2"].resources == {"gpu/l4": 0}


def test_the_same_id_on_another_machine_is_another_device():
    seen = look(with_devices("n1", "amd:0"), with_devices("n2", "amd:0", machine="other"))
    assert [node.resources for node in seen.nodes.values()] == [{"gpu/l4": 1}] * 2
    assert codes(seen) == []


@pytest.mark.parametrize(
    "reports",
    [
        [on_machine("n1", 4), on_machine("n2", 4)],
        [on_machine("n1", 8), on_machine("n2", 8, machine="other")],
        [on_machine("n1", 8), on_machine("n2", 0)],
        [on_machine("n1", 8, machine=""), on_machine("n2", 8, machine="")],
        [on_machine("n1", 16)],
        [on_machine("n1", 8, cores="many"), on_machine("n2", 8, cores="many")],
    ],
    ids=["shares", "two machines", "one of them", "not told", "an administrator's own number", "cores not told"],
)
def test_what_is_shared_out_or_not_known_to_be_shared_counts_as_it_is_said(reports):
    seen = look(*reports)
    assert {name: node.resources for name, node in seen.nodes.items()} == {r.node: r.resources for r in reports}
    assert codes(seen) == []


@pytest.mark.django_db
def test_a_report_that_cannot_be_read_is_named_by_the_pass(monkeypatch):
    fleet = Fleet(min_replicas=0)
    monkeypatch.setattr(fleet.fake, "unreadable", lambda pool: {"n1": "replicas is not a list"})
    fleet.a_pass()
    (problem,) = [p for p in Pass.objects.get().problems if p["code"] == "invalid_report"]
    assert (problem["subject"], "replicas is not a list" in problem["detail"]) == ("node:n1", True)
