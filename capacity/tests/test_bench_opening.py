"""Files are opened by their content; what cannot be read is one sentence with the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capacity.bench.formats.contract import Opened, Unreadable
from capacity.bench.formats.opening import LARGEST, LARGEST_YAML, MOST_DOCUMENTS, opened
from capacity.bench.imports import MOST_FILES, MOST_RUNS, read_files
from capacity.domain.measurement.types import Contents, Skipped


def of(tmp_path: Path, content: bytes) -> Opened:
    path = tmp_path / "any.name"
    path.write_bytes(content)
    return opened(path, "any.name")


@pytest.mark.parametrize(
    ("content", "shape", "documents"),
    [
        (b'{"a": 1}', "object", [{"a": 1}]),
        (b'\xef\xbb\xbf{"a": 1}\n', "object", [{"a": 1}]),
        (b'[{"a": 1}, {"a": 2}]', "list", [{"a": 1}, {"a": 2}]),
        (b'{"a": 1}\n\n{"a": 2}\n', "lines", [{"a": 1}, {"a": 2}]),
        (b'{"a": 1}{"a": 2}', "lines", [{"a": 1}, {"a": 2}]),
        (b'loading the model\n{"a": 1}\ndone {\n', "lines", [{"a": 1}]),
        (b'{"a": NaN, "b": [Infinity, -Infinity], "c": 1e999}', "object", [{"a": None, "b": [None, None], "c": None}]),
        (b'{"a": ' + b"9" * 5000 + b"}", "object", [{"a": None}]),
        (b'a,b\n1,"x, y"\n', "csv", [["a", "b"], ["1", "x, y"]]),
        (b"version: '0.1'\na: .inf\n", "yaml", [{"version": "0.1", "a": None}]),
        (b"--- 12\n", "text", ["--- 12"]),
        (b"| a | t/s |\n|---|---|\n", "text", ["| a | t/s |", "|---|---|"]),
    ],
)
def test_it_is_what_its_content_says(tmp_path: Path, content: bytes, shape: str, documents: list[Any]) -> None:
    found = of(tmp_path, content)
    assert (found.shape, list(found.documents)) == (shape, documents)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty."),
        (b" \n\t\n", "it is empty."),
        (b'{"a": 1}\0', "it is a binary file, no text."),
        ('{"a": 1}'.encode("utf-16"), "it is UTF-16; save it as UTF-8."),
        (b'{\n"a": "\xe9"}', "it is not UTF-8: line 2."),
        (b'{"a": 1,\n"b": "xy', "it is cut off in line 2."),
        (b'{"a": 1,\n"b": [1, 2', "it is cut off in line 2."),
        (b'{"a": 1}\n{"a": ', "it is cut off in line 2."),
        (b'{"a": 1,\n b: 2,\n"c": 3, "d": 4, "e": 5, "f": 6, "g": 7}', "it is no JSON: line 2, column 2."),
        (b'{"a": 1}\n12', "it is no JSON: line 2."),
        (b"[" * 60, "it is cut off in line 1."),
        (b"[" * 100 + b"]" * 100, "its objects and lists are nested deeper than 64; no benchmark writes that."),
        (b'a,b\n1,"x', "it is cut off in line 2."),
        (b"group,metric,statistic\n1,2", "it is cut off in line 2."),
        (b"a: &x [1]\nb: *x\n", "it is YAML with anchors, which are not read."),
        (b"a: 1\nb: [1\n", "it is no YAML that can be read: line 3."),
        (b"a: !!python/object/apply:os.system [ls]\n", "it is no YAML that can be read: line 1."),
        (b"a: 123456789\n" * (LARGEST_YAML // 13 + 1), "it is YAML of more than 1 MB."),
        (b"{}\n" * (MOST_DOCUMENTS + 1), f"it holds more than {MOST_DOCUMENTS} objects."),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(Unreadable) as why:
        of(tmp_path, content)
    assert str(why.value) == said


def test_a_file_over_the_limit_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "big"
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(Unreadable, match="at most 256 MB are read"):
        opened(path, "big")


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    found = read_files([tmp_path, tmp_path / "none"], ["folder", "none"])
    assert [row.where for row in found.unread] == ["folder", "none"]
    assert [row.why for row in found.unread] == ["it is no file.", "it cannot be read: no such file or directory."]


def test_too_many_files_are_refused_before_one_is_read(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="At most 500 files"):
        read_files([tmp_path / "none"] * (MOST_FILES + 1))


def test_too_many_runs_are_refused_before_they_are_compared(tmp_path: Path) -> None:
    many = Contents(stages=(), skipped=(Skipped(where="f", why="no run."),) * (MOST_RUNS + 1))
    path = tmp_path / "f"
    path.touch()
    with pytest.raises(Unreadable, match="At most 5000 runs are read at once, and the files hold 5001"):
        read_files([path], reader=lambda path, where: many)


def test_a_file_that_no_format_knows_is_told_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text('{"hello": 1}')
    (row,) = read_files([path], ["f"]).unread
    assert row.why.startswith("it is no result file that is read. Read are those of vLLM bench serve, GuideLLM")


BITS = st.sampled_from(
    [b"{", b"}", b"[", b"]", b'"', b",", b":", b"\n", b" ", b"1", b"a", b"-", b"|", b"#", b"&", b"*", b"\\", b"\xc3"]
)


@given(st.lists(BITS, max_size=40).map(b"".join) | st.binary(max_size=80))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_read_or_refused_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(content)
    found = read_files([path], ["f"])
    assert found.sweeps == ()
    assert all(row.why.endswith(".") and "\n" not in row.why for row in found.unread)


@pytest.mark.parametrize("content", [b"a,b\n" * 200_001, b"ab\r" * 200_001, b"a," * 1_000_001], ids=["rows", "lines", "cells"])
def test_a_table_of_more_than_any_tool_writes_is_refused_before_it_fills_the_memory(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(Unreadable, match="it holds more than 200000 lines or 1000000 cells; import the tool's summary instead"):
        of(tmp_path, content)


def test_a_files_name_is_shown_and_kept_without_what_a_terminal_would_obey(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"")
    (row,) = read_files([path], ["a\x1b[31m\n\u202eb\udcff.json"]).unread
    assert row.where == "a\\x1b[31m\\n\\u202eb\\udcff.json"
