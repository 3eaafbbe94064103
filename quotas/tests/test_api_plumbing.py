"""What all of the API stands on: bodies, ETags, and paths of errors."""

from __future__ import annotations

import io

import pytest
from rest_framework.exceptions import ParseError

from quotas.api.errors import Problem, flatten
from quotas.api.etags import etag, require_match
from quotas.api.parsers import LARGEST_BODY_BYTES, BoundedJSONParser


def parse(text: bytes):
    return BoundedJSONParser().parse(io.BytesIO(text))


def test_json_is_read_as_it_stands():
    assert parse('{"a": ["🐙", 1.5, null, true]}'.encode()) == {"a": ["🐙", 1.5, None, True]}


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"NaN", b'{"a": -Infinity}', b'{"a": 1, "a": 2}', b"\xff", b'"\\ud800"', b'{"\\udfff": 1}'),
        *(b'["\\u0000"]', b'{"a\\u0000": 1}', b'{"a": {"b": ["x\\u0000"]}}', b"[" * 100_000, b"9" * 5000),
    ],
)
def test_what_is_no_json_or_could_not_be_stored_is_refused(text):
    with pytest.raises(ParseError):
        parse(text)


def test_a_body_may_be_10_mb_and_no_more():
    body = b'"' + b"x" * (LARGEST_BODY_BYTES - 2) + b'"'
    assert len(parse(body)) == LARGEST_BODY_BYTES - 2
    with pytest.raises(Problem) as caught:
        parse(body + b" ")
    assert caught.value.status_code == 413


def test_an_etag_follows_what_people_edit_and_not_what_is_observed():
    row = {"a": 1, "b": "x", "seen": 1}
    observed = frozenset({"seen"})
    assert etag(row, observed) == etag({"b": "x", "a": 1, "seen": 2}, observed)
    assert etag(row, observed) != etag({**row, "a": 2}, observed)


@pytest.mark.parametrize("header", ['"t"', 'W/"t"', '"old", "t"', "*", ' "t" '])
def test_a_tag_that_was_read_lets_an_edit_through(header):
    require_match(header, '"t"', {})


@pytest.mark.parametrize(("header", "status"), [(None, 428), ("", 428), ('"old"', 412), ("t", 412)])
def test_an_edit_of_something_unseen_is_refused(header, status):
    with pytest.raises(Problem) as caught:
        require_match(header, '"t"', {"a": 1})
    assert caught.value.status_code == status


def test_nested_errors_become_paths():
    detail = {"parents": {0: ["none"]}, "rows": [{}, {"name": ["bad", "short"]}], "non_field_errors": ["all"]}
    assert flatten(detail) == {"parents[0]": ["none"], "rows[1].name": ["bad", "short"], "": ["all"]}
