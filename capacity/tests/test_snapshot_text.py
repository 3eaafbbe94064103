"""Snapshot text: exact numbers, and no text that brings it down; and the way back from a snapshot to its document."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from capacity.domain import InvalidSnapshot, loads, parse_snapshot, snapshot_document
from capacity.domain.types import UNKNOWN
from capacity.tests.builders import ago, fleet, measurement, replica, snapshot


def short(value: object) -> str:
    """A test's name where the value itself would be too long for one."""
    return repr(value)[:24]


def text_with(value: str, key: str = "min_replicas") -> str:
    return json.dumps(snapshot(models=[{"name": "chat", key: "HERE"}])).replace('"HERE"', value)


def paths(text: str | bytes) -> list[str]:
    with pytest.raises(InvalidSnapshot) as caught:
        parse_snapshot(loads(text))
    assert all(len(fault.message) < 300 for fault in caught.value.faults)
    return [fault.path for fault in caught.value.faults]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nope",
        "{",
        b"\xff\xfe{}",
        b"\xed\xa0\x80",
        "[" * 100_000,
        '{"a":' * 100_000,
        "NaN",
        text_with("NaN"),
        text_with("-Infinity"),
        "{} {}",
    ],
    ids=short,
)
def test_text_that_is_no_json_is_one_fault_at_the_root(text: str | bytes) -> None:
    assert paths(text) == ["$"]


@pytest.mark.parametrize(
    "value",
    ["9" * 5000, "-" + "9" * 5000, "1e9999999", "1e-9999999", "1" + "0" * 13, "0." + "1" * 5000, "[" * 500 + "]" * 500],
    ids=short,
)
def test_a_huge_number_or_deep_nesting_is_a_fault_where_it_stands(value: str) -> None:
    assert paths(text_with(value)) == ["models[0].min_replicas"]


@pytest.mark.parametrize("value", ["9" * 5000, "1e9999999", "[" * 500 + "]" * 500, "1e400", '"\\ud800"'], ids=short)
def test_as_a_sample_the_same_is_unknown(value: str) -> None:
    assert parse_snapshot(loads(text_with(value, "held_requests"))).models[0].held_requests is None
    assert parse_snapshot(loads(text_with(value, "demand_peak"))).models[0].demand_peak is UNKNOWN


@pytest.mark.parametrize(("value", "expected"), [("3.0", 3), ("30e-1", 3), ("0.3e1", 3), ("3e0", 3), ("-0", 0), ("-0.0", 0)])
def test_a_whole_number_is_read_by_its_value(value: str, expected: int) -> None:
    assert parse_snapshot(loads(text_with(value))).models[0].min_replicas == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0.1", Fraction(1, 10)),
        ("4400.0", Fraction(4400)),
        ("1e-3", Fraction(1, 1000)),
        ("0.30000000000000000001", Fraction(30000000000000000001, 10**20)),
    ],
)
def test_a_decimal_is_exact(value: str, expected: Fraction) -> None:
    text = json.dumps(fleet(measurements=[measurement(tokens_per_second="HERE")])).replace('"HERE"', value)
    assert (parse_snapshot(loads(text)).measurements or ())[0].tokens_per_second == expected


def test_decimals_of_another_parser_are_taken_as_they_are_written() -> None:
    found = parse_snapshot(fleet(measurements=[measurement(tokens_per_second=0.1)]))
    assert (found.measurements or ())[0].tokens_per_second == Fraction(1, 10)


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ('"at": "2026-11-30T12:00:00Z"', "at"),
        ('"models": [{"name": "a", "mode": "auto", "mode": "paused"}]', "models[0].mode"),
        ('"nodes": [{"name": "a", "resources": {"cpu": 1, "cpu": 2}}]', "nodes[0].resources.cpu"),
    ],
)
def test_a_key_that_stands_twice_is_a_fault_where_it_stands(rest: str, expected: str) -> None:
    assert paths(f'{{"format": "llmgw.snapshot/1", "at": "2026-11-30T12:00:00Z", {rest}}}') == [expected]


def test_names_in_any_script_are_names() -> None:
    name = "🚀" * 200
    assert parse_snapshot(loads(json.dumps(snapshot(models=[{"name": name}])))).models[0].name == name


def test_bytes_with_a_mark_of_order_are_read() -> None:
    assert parse_snapshot(loads(b"\xef\xbb\xbf" + json.dumps(snapshot()).encode())).models == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2026-11-30T12:00:00+00:00", "2026-11-30T12:00:00Z"), ("2026-11-30T13:30:00.5+01:30", "2026-11-30T12:00:00.500000Z")],
)
def test_an_instant_is_written_in_utc(text: str, expected: str) -> None:
    assert snapshot_document(parse_snapshot({**snapshot(), "at": text}))["at"] == expected


def full(**overrides: Any) -> dict[str, Any]:
    return fleet(
        [replica(sampled_at=ago(3)), replica("s", state="starting", since=ago(1.5), nodes=[], in_flight="?")],
        chat={"scope": "team", "scale_down_fraction": "2/3", "demand_peak": "?", "woken_at": ago(9), "held_requests": None},
        settings={"scale_down_fraction": "1/3", "reclaim": False},
        measurements=[measurement(tokens_per_second=0.1, status="stale")],
        backoffs=[{"model": "chat", "profile": "p", "node": "n1", "until": ago(-5)}],
        scopes=[{"name": "org"}, {"name": "team", "parents": ["org"]}],
        quotas=[
            {"scope": "org", "target": "model:chat", "limit": 0},
            {"scope": "org", "target": "gpu", "guarantee": 0, "lowered_at": ago(4)},
        ],
        **overrides,
    )


def test_a_snapshot_and_its_document_say_the_same() -> None:
    found = parse_snapshot(full())
    again = parse_snapshot(loads(json.dumps(snapshot_document(found))))
    assert again == found
    for kind in ("replicas", "nodes", "measurements", "quotas", "scopes"):
        unread = parse_snapshot({**full(), kind: None})
        assert parse_snapshot(snapshot_document(unread)) == unread
