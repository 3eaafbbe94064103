"""Files that strangers made or broke: whatever stands in them, a format gives Contents or Unreadable, and no number below 0."""

import copy
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.bench.formats.contract import Opened, Unreadable
from capacity.bench.formats.registry import FORMATS
from capacity.tests.bench_opened import NAMES, format_of, opened

READ = [name for name in NAMES if any(each.recognises(opened(name)) for each in FORMATS)]
OPENED = {name: opened(name) for name in READ}

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [-1, -0.5, 0, 0.0, 1e308, -1e308, 2**70, 10**400, "", "nan", "inf", "-3", "1e999", "x\x00\n", "ms", [], {}, [[]]]
    ),
    st.sampled_from(
        [float("nan"), float("inf"), -math.inf, ["a", 1], {"mean": -1}, {"mean": [1]}, {"": None}, {"unit": "s", "avg": -2}]
    ),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
)


def places(document, path=()):
    """Every place of a document, by its path."""
    yield path
    if isinstance(document, dict):
        for key, value in document.items():
            yield from places(value, (*path, key))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from places(value, (*path, index))


def replaced(documents, path, value):
    if not path:
        return value if isinstance(value, list) else [value]
    place = documents
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return documents


@st.composite
def broken(draw):
    """A known file, of its own shape or another, with one to four values replaced by odd ones."""
    found = OPENED[draw(st.sampled_from(READ))]
    documents = copy.deepcopy(list(found.documents))
    for _ in range(draw(st.integers(1, 4))):
        known = list(places(documents))
        documents = replaced(documents, known[draw(st.integers(0, len(known) - 1))], copy.deepcopy(draw(ODD)))
    if found.shape == "csv":
        return Opened(where="file", shape="csv", documents=[cells(row) for row in documents])
    shape = draw(st.sampled_from([found.shape, found.shape, "object", "list", "lines", "yaml"]))
    return Opened(where="file", shape=shape, documents=documents)


def cells(row):
    """A row of a CSV holds text alone, whatever it says."""
    return [str(cell)[:100] for cell in row] if isinstance(row, list) else [repr(row)[:100]]


def numbers(stage):
    yield from (stage.asked, stage.mean_in_flight, stage.requests, stage.errors, stage.incomplete, stage.seconds)
    yield stage.tokens_per_second
    for name in ("ttft", "tpot", "e2e"):
        yield from stage.statistics(name).values()


def check(each, found):
    if not each.recognises(found):
        return
    try:
        contents = each.read(found)
    except Unreadable as error:
        assert str(error).endswith(".")
        return
    assert contents.stages
    for _, stage in contents.stages:
        assert all(value is None or (value >= 0 and math.isfinite(value)) for value in numbers(stage))
        assert all(value > 0 for name in ("ttft", "tpot", "e2e") for value in stage.statistics(name).values())


@settings(max_examples=300)
@given(broken())
def test_a_broken_file_is_read_or_refused_and_gives_no_number_below_zero(found):
    for each in FORMATS:
        check(each, found)


@pytest.mark.parametrize("documents", [[], [None], [[]], [{}], [1], ["x"], [[None]], [{"a": {}}]])
@pytest.mark.parametrize("shape", ["object", "list", "lines", "yaml"])
def test_what_is_no_result_of_any_tool_is_recognised_by_none(documents, shape):
    assert not any(each.recognises(Opened(where="file", shape=shape, documents=documents)) for each in FORMATS)


@pytest.mark.parametrize("name", READ)
def test_a_file_is_read_the_same_again_and_never_changed(name):
    found = opened(name)
    before, each = copy.deepcopy(found.documents), format_of(found)

    def answer():
        try:
            return each.read(found)
        except Unreadable as error:
            return str(error)

    assert answer() == answer()
    assert found.documents == before
