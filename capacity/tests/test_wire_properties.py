"""Reports and orders on the wire: what is sent arrives, and whatever else arrives is refused with a sentence."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.drivers.wire import order_from_json, report_from_json, report_to_json
from capacity.ports import DeviceReport, NodeReport, ReplicaReport

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)
COUNT = st.integers(0, 10**12)
TIME = st.datetimes(timezones=st.just(UTC), min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1))  # noqa: DTZ001
UNITS = st.dictionaries(TEXT, COUNT, max_size=3)
LABELS = st.dictionaries(TEXT, TEXT, max_size=3)
REPLICAS = st.builds(
    ReplicaReport,
    name=TEXT,
    model=TEXT,
    profile=TEXT,
    nodes=st.lists(TEXT, max_size=2).map(tuple),
    resource=TEXT,
    units=COUNT,
    state=st.sampled_from(["starting", "ready", "unready", "draining", "exited"]),
    since=TIME,
    url=st.none() | TEXT,
    exit_code=st.none() | st.integers(-64, 255),
)
REPORTS = st.builds(
    NodeReport,
    node=TEXT,
    pool=TEXT,
    at=TIME,
    resources=UNITS,
    foreign=UNITS,
    replicas=st.lists(REPLICAS, max_size=3).map(tuple),
    labels=LABELS,
    generation=COUNT,
    unknown_products=st.lists(TEXT, max_size=2).map(tuple),
    shown=LABELS,
    devices=st.lists(st.builds(DeviceReport, id=TEXT, resource=TEXT, product=TEXT, memory_mib=st.none() | COUNT), max_size=2).map(
        tuple
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
)


@given(REPORTS)
def test_a_report_arrives_as_it_was_sent(report: NodeReport) -> None:
    assert report_from_json(json.loads(json.dumps(report_to_json(report)))) == report


@given(REPORTS, st.data())
def test_a_report_with_one_field_of_any_other_kind_is_read_or_refused(report: NodeReport, data: st.DataObject) -> None:
    document = report_to_json(report)
    document[data.draw(st.sampled_from(sorted(document)))] = data.draw(JSON)
    with contextlib.suppress(ValueError):
        read = report_from_json(document)
        assert report_from_json(report_to_json(read)) == read, "what is read is a report like any other"


@given(JSON)
def test_anything_else_is_refused(document: object) -> None:
    for read in (report_from_json, order_from_json):
        with pytest.raises(ValueError):
            read(document)


def test_a_report_of_an_older_worker_has_no_devices() -> None:
    report = NodeReport(node="n", pool="p", at=datetime(2026, 1, 1, tzinfo=UTC), resources={})
    document = {key: value for key, value in report_to_json(report).items() if key not in {"shown", "devices"}}
    assert report_from_json(document) == report
