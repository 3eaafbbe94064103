"""What a snapshot is refused for: each fault by its path, all of them at once."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from capacity.domain import InvalidSnapshot, parse_snapshot
from capacity.tests.builders import Document, ago, fleet, measurement, model, node, profile, replica, snapshot

BIG = 10**12 + 1


def valid() -> Document:
    """One good row of every kind."""
    return fleet(
        [replica()],
        chat={"scope": "team"},
        settings={},
        backoffs=[{"model": "chat", "profile": "p", "node": "n1", "until": ago(0)}],
        scopes=[{"name": "org"}, {"name": "team", "parents": ["org"], "funding_parent": "org"}],
        quotas=[{"scope": "org", "target": "gpu/h100", "guarantee": 1, "limit": 2}],
    )


def changed(path: str, value: Any) -> Document:
    """The valid document with the value at `list.0.key` (or `settings.key`) replaced."""
    document = deepcopy(valid())
    *way, key = path.split(".")
    place: Any = document
    for step in way:
        place = place[int(step) if step.isdigit() else step]
    place[key] = value
    return document


def faults(document: Any) -> list[str]:
    with pytest.raises(InvalidSnapshot) as caught:
        parse_snapshot(document)
    assert all(fault.message and "\n" not in fault.message + fault.path for fault in caught.value.faults)
    return [fault.path for fault in caught.value.faults]


def test_the_valid_document_is_valid() -> None:
    assert parse_snapshot(valid()).models[0].scope == "team"


@pytest.mark.parametrize(
    "value", [-1, 2.5, "3", True, None, [], {}, BIG, pytest.param(10**5000, id="5,001 digits"), float("nan"), float("inf")]
)
@pytest.mark.parametrize(
    "path",
    [
        "settings.down_window_seconds",
        "settings.max_step_up",
        "nodes.0.resources.gpu/h100",
        "models.0.min_replicas",
        "profiles.0.units",
        "profiles.0.hosts",
        "measurements.0.max_concurrency",
        "quotas.0.weight",
    ],
)
def test_a_whole_number_from_0_to_a_million_millions_is_asked_for(path: str, value: Any) -> None:
    expected = path.replace(".0", "[0]")
    assert faults(changed(path, value)) == [expected]


@pytest.mark.parametrize(
    "path",
    [
        "models.0.max_replicas",
        "models.0.demand_seconds",
        "models.0.down_window_seconds",
        "models.0.drain_timeout_seconds",
        "profiles.0.start_timeout_seconds",
        "quotas.0.guarantee",
        "quotas.0.limit",
    ],
)
def test_where_null_says_nothing_it_is_no_fault(path: str) -> None:
    parse_snapshot(changed(path, None))
    parse_snapshot(changed(path, 3.0))
    assert faults(changed(path, -1)) == [path.replace(".0", "[0]")]


@pytest.mark.parametrize("path", ["profiles.0.units", "profiles.0.hosts", "settings.max_step_up"])
def test_what_would_divide_by_nothing_or_never_begin_is_at_least_one(path: str) -> None:
    assert faults(changed(path, 0)) == [path.replace(".0", "[0]")]


@pytest.mark.parametrize("path", ["models.0.priority", "profiles.0.priority"])
def test_priorities_may_be_negative(path: str) -> None:
    parse_snapshot(changed(path, -5))
    assert faults(changed(path, -BIG)) == [path.replace(".0", "[0]")]


@pytest.mark.parametrize(
    "value", ["1.01", "-0.5", "", "70%", "1/0", "3/2", " 0.5", "٠.5", 0.7, 1, None, pytest.param("0." + "1" * 200, id="long")]
)
@pytest.mark.parametrize("path", ["settings.scale_down_fraction", "models.0.scale_down_fraction"])
def test_the_fraction_is_a_decimal_or_fraction_in_a_string(path: str, value: Any) -> None:
    if value is None and path.startswith("models"):
        parse_snapshot(changed(path, value))
    else:
        assert faults(changed(path, value)) == [path.replace(".0", "[0]")]


@pytest.mark.parametrize(
    "value", ["2026-11-30", "2026-11-30T12:00:00", "2026-13-30T12:00:00Z", "now", 0, None, "0001-01-01T00:00:00+01:00"]
)
def test_a_time_names_its_zone(value: Any) -> None:
    assert faults({**valid(), "at": value}) == ["at"]


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("settings.spread", 1, "settings.spread"),
        ("settings.reclaim", 1, "settings.reclaim"),
        ("settings.stale_measurements", "keep", "settings.stale_measurements"),
        ("settings.idle_seconds", 120, "settings.wake_seconds"),
        ("settings.wake_seconds", 600, "settings.wake_seconds"),
        ("nodes.0.name", "", "nodes[0].name"),
        ("nodes.0.name", "\ud800", "nodes[0].name"),
        ("nodes.0.resources", [], "nodes[0].resources"),
        ("nodes.0.resources", {"gpu//x": 1}, "nodes[0].resources.gpu//x"),
        ("nodes.0.labels", {"zone": 1}, "nodes[0].labels.zone"),
        ("nodes.0.labels", {"a b": 1}, 'nodes[0].labels["a b"]'),
        ("nodes.0.ready", "yes", "nodes[0].ready"),
        ("models.0.max_replica", 3, "models[0].max_replica"),
        ("models.0.bad\nkey", 3, 'models[0]["bad\\nkey"]'),
        ("models.0.mode", "off", "models[0].mode"),
        ("models.0.scope", "ghost", "models[0].scope"),
        ("models.0.scope", 3, "models[0].scope"),
        ("models.0.max_replicas", 0, "models[0].max_replicas"),
        ("models.0.scale_to_zero", None, "models[0].scale_to_zero"),
        ("profiles.0.model", "ghost", "profiles[0].model"),
        ("profiles.0.resource", "model:chat", "profiles[0].resource"),
        ("profiles.0.state", "off", "profiles[0].state"),
        ("profiles.0.selector", None, "profiles[0].selector"),
        ("measurements.0.profile", "ghost", "measurements[0].profile"),
        ("measurements.0.tokens_per_second", "4400", "measurements[0].tokens_per_second"),
        ("measurements.0.tokens_per_second", -0.1, "measurements[0].tokens_per_second"),
        ("measurements.0.status", "old", "measurements[0].status"),
        ("replicas.0.model", "ghost", "replicas[0].model"),
        ("replicas.0.profile", "ghost", "replicas[0].profile"),
        ("replicas.0.state", "gone", "replicas[0].state"),
        ("replicas.0.nodes", "n1", "replicas[0].nodes"),
        ("replicas.0.nodes", ["n1", 2], "replicas[0].nodes[1]"),
        ("replicas.0.drained_for", "ghost", "replicas[0].drained_for"),
        ("replicas.0.drain_reason", "because", "replicas[0].drain_reason"),
        ("backoffs.0.model", "ghost", "backoffs[0].model"),
        ("backoffs.0.until", None, "backoffs[0].until"),
        ("scopes.1.parents", ["org", "org"], "scopes[1].parents[1]"),
        ("scopes.1.funding_parent", "other", "scopes[1].funding_parent"),
        ("quotas.0.scope", "ghost", "quotas[0].scope"),
        ("quotas.0.target", "model:ghost", "quotas[0].target"),
        ("quotas.0.target", "model:", "quotas[0].target"),
        ("quotas.0.target", "gpu/", "quotas[0].target"),
        ("quotas.0.target", "model:chat", "quotas[0].guarantee"),
        ("quotas.0.lend", 1, "quotas[0].lend"),
    ],
)
def test_the_fault_names_its_path(path: str, value: Any, expected: str) -> None:
    assert faults(changed(path, value))[0] == expected


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("nodes", "name"),
        ("nodes", "resources"),
        ("models", "name"),
        ("profiles", "model"),
        ("profiles", "name"),
        ("profiles", "units"),
        ("profiles", "resource"),
        ("measurements", "max_concurrency"),
        ("measurements", "tokens_per_second"),
        ("replicas", "name"),
        ("replicas", "nodes"),
        ("replicas", "state"),
        ("backoffs", "until"),
        ("scopes", "name"),
        ("quotas", "scope"),
        ("quotas", "target"),
    ],
)
def test_a_missing_key_is_named(kind: str, key: str) -> None:
    document = deepcopy(valid())
    del document[kind][0][key]
    assert f"{kind}[0].{key}" in faults(document)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("nodes", "nodes[1].name"),
        ("models", "models[1].name"),
        ("profiles", "profiles[1].name"),
        ("measurements", "measurements[1].profile"),
        ("replicas", "replicas[1].name"),
        ("backoffs", "backoffs[1].node"),
        ("quotas", "quotas[1].target"),
    ],
)
def test_the_same_row_twice_is_a_fault_of_the_second(kind: str, expected: str) -> None:
    document = deepcopy(valid())
    document[kind].append(dict(document[kind][0]))
    assert faults(document) == [expected]


@pytest.mark.parametrize("kind", ["replicas", "nodes", "measurements", "quotas", "scopes"])
def test_a_store_that_could_not_be_read_is_null_and_no_fault(kind: str) -> None:
    assert getattr(parse_snapshot({**valid(), kind: None}), kind) is None


@pytest.mark.parametrize("kind", ["models", "profiles", "backoffs", "settings"])
def test_the_other_lists_are_never_null(kind: str) -> None:
    assert kind in faults({**valid(), kind: None})


@pytest.mark.parametrize("kind", ["nodes", "models", "quotas"])
@pytest.mark.parametrize("value", [{}, "x", 3, True])
def test_a_list_is_a_list_of_objects(kind: str, value: Any) -> None:
    assert kind in faults({**valid(), kind: value})
    assert f"{kind}[0]" in faults({**valid(), kind: [value]} if value != {} else {**valid(), kind: [[]]})


@pytest.mark.parametrize("document", [None, [], "x", 3, True])
def test_a_snapshot_is_an_object(document: Any) -> None:
    assert faults(document) == ["$"]


def test_format_and_instant_are_required() -> None:
    assert faults({}) == ["format", "at"]
    assert faults({**valid(), "format": "llmgw.snapshot/2"}) == ["format"]
    assert faults({**valid(), "nodez": []}) == ["nodez"]


@pytest.mark.parametrize("state", ["starting", "unready"])
def test_since_is_required_of_what_may_be_stuck(state: str) -> None:
    row = replica(state=state)
    del row["since"]
    assert faults(fleet([row])) == ["replicas[0].since"]
    assert faults(fleet([{**row, "since": None}])) == ["replicas[0].since"]
    parse_snapshot(fleet([{**row, "state": "ready"}]))


def test_every_fault_is_named_and_one_mistake_only_once() -> None:
    document = snapshot(
        models=[model(min_replicas=4, max_replicas=2, mode="x"), model("b", min_replicas=4, max_replicas=2)],
        profiles=[profile(units=-1)],
        measurements=[measurement(-1)],
        replicas=[replica()],
        nodes=[node(units=-1)],
    )
    assert faults(document) == [
        "nodes[0].resources.gpu/h100",
        "models[0].mode",
        "profiles[0].units",
        "measurements[0].max_concurrency",
        "models[1].max_replicas",
    ]


def test_the_message_has_the_numbers() -> None:
    with pytest.raises(InvalidSnapshot) as caught:
        parse_snapshot(snapshot(models=[*map(model, "abc"), model("d", min_replicas=4, max_replicas=2)]))
    assert [(fault.path, fault.message) for fault in caught.value.faults] == [
        ("models[3].max_replicas", "2 is below min_replicas 4")
    ]


def test_scopes_that_are_unknown_are_not_checked_against() -> None:
    found = parse_snapshot({**valid(), "scopes": None})
    assert found.models[0].scope == "team"


@pytest.mark.parametrize("value", [3, 3.0, 0])
def test_samples_are_read_by_value_and_a_peak_may_be_there_and_say_nothing(value: Any) -> None:
    document = fleet([replica(in_flight=value)], chat={"demand_peak": value, "held_requests": value})
    found = parse_snapshot(document)
    assert (found.replicas or ())[0].in_flight == found.models[0].demand_peak == found.models[0].held_requests == int(value)
