"""Per-request lists are cut out while a file is read; everything else of it stays, and memory is bounded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.bench.formats import streaming
from capacity.bench.formats.contract import Unreadable
from capacity.bench.formats.streaming import DEEPEST, LARGEST_REST, PER_REQUEST, slim


def pruned(value: Any) -> Any:
    """What must be left of a document."""
    if isinstance(value, dict):
        return {key: [] if key in PER_REQUEST and isinstance(item, list) else pruned(item) for key, item in value.items()}
    return [pruned(item) for item in value] if isinstance(value, list) else value


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.sampled_from('ab"\\[]{}:,\nä'), max_size=8)
)
KEYS = st.sampled_from(["requests", "ttfts", "mean", 'a"b', "]", "\\", "successful"])
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=30
)


@given(st.dictionaries(KEYS, DOCUMENTS, max_size=5), st.sampled_from([None, 0, 2]), st.sampled_from([1, 7, 2**18]))
def test_what_is_left_is_the_document_without_its_lists(document: dict[str, Any], indent: int | None, piece: int) -> None:
    """Also where a piece of the file ends within a text or a list."""
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    with patch.multiple(streaming, _PIECE=piece, _SHORT=1):
        slimmed = slim(text.encode())
    assert json.loads(slimmed.text) == pruned(document)
    assert (slimmed.cut_off, slimmed.lines) == (False, text.count("\n") + 1)


@given(st.binary(max_size=60) | st.text('[]{}":,\\ \nx', max_size=60).map(str.encode))
def test_any_bytes_are_kept_or_cut_and_never_fail(found: bytes) -> None:
    slimmed = slim(found)
    assert len(slimmed.text) <= len(found)
    assert slimmed.cut_off or b"[" in found or slimmed.text == found


@given(st.dictionaries(KEYS, DOCUMENTS, min_size=1, max_size=4), st.data())
def test_a_document_that_ends_early_is_cut_off(document: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(document).encode()
    with patch.multiple(streaming, _PIECE=5, _SHORT=1):
        assert slim(text[: data.draw(st.integers(1, len(text) - 1))]).cut_off


def test_several_documents_and_the_lines_between_them_stay() -> None:
    text = b'init: [ROCm] "one\n{"ttfts": [1, 2], "a": 1}\n{"a": 2} {"a": 3},{"itls": [[3]]}\nbye {\n'
    assert slim(text).text == b'init: [ROCm] "one\n{"ttfts": [], "a": 1}\n{"a": 2} {"a": 3},{"itls": []}\nbye {\n'


def test_a_line_of_what_is_left_is_told_as_that_of_the_file() -> None:
    text = b'{\n"requests": [\n1,\n2\n],\n"a": 1,\n"itls": [\n\n],\n"b" 2}'
    slimmed = slim(text)
    assert slimmed.text == b'{\n"requests": [],\n"a": 1,\n"itls": [],\n"b" 2}'
    assert [slimmed.line_of(line) for line in (1, 2, 3, 4, 5)] == [1, 2, 6, 7, 10]
    assert slimmed.lines == 10


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"[" * (DEEPEST + 1), "nested deeper"),
        (b'{"a": [' + b"[],\n" * 500_001, "too large"),
        (b'{"a": "' + b"x" * (LARGEST_REST + 1) + b'"}', "too large"),
        (b"x" * (LARGEST_REST + 1), "too large"),
    ],
    ids=["deep", "many values", "a long text", "no document"],
)
def test_what_no_tool_writes_is_refused_in_one_sentence(text: bytes, says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        slim(text)


def test_brackets_by_the_million_within_a_cut_list_are_passed_over_by_the_piece() -> None:
    """One by one they took half a second a million."""
    with patch.object(streaming._Scan, "_step", autospec=True, side_effect=streaming._Scan._step) as step:
        assert slim(b'{"itls": [' + b'["]", {}],' * 300_000 + b'[]], "a": 1}').text == b'{"itls": [], "a": 1}'
    assert step.call_count < 10


def test_depth_within_a_list_that_is_cut_out_costs_nothing() -> None:
    assert slim(b'{"itls": ' + b"[" * 100_000 + b"]" * 100_000 + b"}").text == b'{"itls": []}'


_MEASURED = """
import json, mmap, sys
from pathlib import Path
from capacity.bench.formats.streaming import slim
with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
    slimmed = slim(mapped)
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
print(len(json.loads(slimmed.text)["benchmarks"]), int(peak.split()[1]) // 1024)
"""


def test_a_large_file_is_read_in_little_memory(tmp_path: Path) -> None:
    """30 MB, most of it requests; all of it as values would be above 200 MB (its `ru_maxrss` holds the test process)"""
    file = tmp_path / "large.json"
    request = json.dumps({"prompt": "word [ " * 40, "itls": [0.01] * 60, "request_id": 1})
    part = '{"requests": {"successful": [' + ",".join([request] * 14_000) + ']}, "duration": 60.0}'
    file.write_text('{"benchmarks": [' + ",".join([part] * 4) + "]}")
    assert file.stat().st_size > 30_000_000
    root = Path(streaming.__file__).parents[3]
    ran = subprocess.run([sys.executable, "-c", _MEASURED, str(file)], cwd=root, capture_output=True, text=True, check=True)
    benchmarks, megabytes = map(int, ran.stdout.split())
    assert benchmarks == 4 and megabytes < 150
