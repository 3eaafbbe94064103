"""A file as what it can be parsed to: by its content, never by its name. Files are data, and strangers wrote them."""

from __future__ import annotations

import csv
import io
import json
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from capacity.bench.formats.contract import Opened, Shape, Unreadable
from capacity.bench.formats.streaming import DEEPEST, TOO_DEEP, Slimmed, slim

LARGEST: Final = 256 * 2**20
LARGEST_YAML: Final = 2**20
LONGEST_NUMBER: Final = 40
"""Characters of a number: no figure of a server has more."""
FIRST_LINES: Final = 200
FIRST_BYTES: Final = 2**16
EMPTY: Final = "it is empty."
MOST_DOCUMENTS: Final = 100_000
LINE_ENDS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""All that `splitlines` ends a line at."""
MOST_LINES: Final = 200_000
MOST_CELLS: Final = 1_000_000
MANY_LINES: Final = f"it holds more than {MOST_LINES} lines or {MOST_CELLS} cells; import the tool's summary instead."
TOO_MANY: Final = f"it holds more than {MOST_DOCUMENTS} objects."
_KEY: Final = re.compile(r"(?:---|[A-Za-z_][\w./-]*:(?:\s|$))")
_BLANK: Final = re.compile(r"[\s,]*")


def opened(path: Path, where: str) -> Opened:
    """`where`: what the person calls the file. Unreadable: empty, too large, binary, not UTF-8, or cut off.

    Per-request lists are cut out while reading; 200 MB of GuideLLM take a few seconds and 22 MB of memory.
    """
    slimmed = _slimmed(path)
    text = _text(slimmed)
    start = text.lstrip()[:1]
    if start in ("{", "["):
        return _json(text, where, slimmed)
    if sum(map(text.count, LINE_ENDS)) > MOST_LINES:
        raise Unreadable(MANY_LINES)
    lines = _objects_between(text) if "{" in text else []
    if lines:
        return Opened(where=where, shape="lines", documents=lines)
    return _table_or_text(text, where)


def _slimmed(path: Path) -> Slimmed:
    try:
        size = path.stat().st_size
        if path.is_file() and 0 < size <= LARGEST:
            return _mapped(path)
    except OSError as error:
        raise Unreadable(f"it cannot be read: {(error.strerror or type(error).__name__).lower()}.") from None
    if not path.is_file():
        raise Unreadable("it is no file.")
    raise Unreadable(f"it has {size / 2**20:.0f} MB, and at most {LARGEST // 2**20} MB are read." if size else EMPTY)


def _mapped(path: Path) -> Slimmed:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        _must_be_text(content[:FIRST_BYTES])
        return slim(content)


def _must_be_text(content: bytes) -> None:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Unreadable("it is UTF-16; save it as UTF-8.")
    if b"\0" in content:
        raise Unreadable("it is a binary file, no text.")


def _text(slimmed: Slimmed) -> str:
    _must_be_text(slimmed.text)
    try:
        text = slimmed.text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8: line {slimmed.line_of(_line(slimmed.text, error.start))}.") from None
    if not text.strip():
        raise Unreadable(EMPTY)
    return text


def _line(content: bytes, position: int) -> int:
    return content.count(b"\n", 0, position) + 1


def _json(text: str, where: str, slimmed: Slimmed) -> Opened:
    """One object, one list, or several objects one after another, each on a line or not."""
    documents: list[Any] = []
    position = 0
    while (position := _past_blanks(text, position)) < len(text):
        document, position = _next(text, position, slimmed)
        documents.append(document)
        if len(documents) > MOST_DOCUMENTS:
            raise Unreadable(TOO_MANY)
    if len(documents) > 1:
        return Opened(where=where, shape="lines", documents=documents)
    if isinstance(documents[0], list):
        return Opened(where=where, shape="list", documents=documents[0])
    return Opened(where=where, shape="object", documents=documents)


def _past_blanks(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    return found.end() if found else position


def _next(text: str, position: int, slimmed: Slimmed) -> tuple[Any, int]:
    try:
        document, end = _decoder().raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise Unreadable(_fault(text, error, slimmed)) from None
    except RecursionError:
        raise Unreadable(TOO_DEEP) from None
    if not isinstance(document, dict | list):
        raise Unreadable(f"it is no JSON: line {slimmed.line_of(text.count(chr(10), 0, position) + 1)}.")
    return _not_too_deep(document), end


def _fault(text: str, error: json.JSONDecodeError, slimmed: Slimmed) -> str:
    """A file that ends too early is told from one that is wrong."""
    rest = text[error.pos :].strip()
    open_text = error.msg.startswith("Unterminated string")
    last = text.rstrip().count("\n") + 1
    if open_text or len(rest) <= 1 or (error.lineno >= last and len(rest) < LONGEST_NUMBER and not rest.endswith(("}", "]"))):
        return f"it is cut off in line {slimmed.lines}."
    return f"it is no JSON: line {slimmed.line_of(error.lineno)}, column {error.colno}."


def _decoder() -> json.JSONDecoder:
    """Python's tools write NaN and Infinity: no value."""
    return json.JSONDecoder(parse_constant=lambda _: None, parse_float=_float, parse_int=_int)


def _float(text: str) -> float | None:
    found = float(text)
    return found if abs(found) != float("inf") else None


def _int(text: str) -> int | None:
    return int(text) if len(text) <= LONGEST_NUMBER else None


def _not_too_deep(document: Any) -> Any:
    layer: list[Any] = [document] if isinstance(document, dict | list) else []
    for _ in range(DEEPEST):
        layer = [inner for outer in layer for inner in _inside(outer) if isinstance(inner, dict | list)]
        if not layer:
            return document
    raise Unreadable(TOO_DEEP)


def _inside(outer: Any) -> Iterator[Any]:
    if isinstance(outer, dict):
        return iter(outer.values())
    return iter(outer if isinstance(outer, list) else ())


def _objects_between(text: str) -> list[Any]:
    """Objects on lines of their own among others: a tool's log before its results."""
    found: list[Any] = []
    for line in text.splitlines():
        if line.startswith("{") and line.rstrip().endswith("}"):
            try:
                found.append(_not_too_deep(_decoder().decode(line.rstrip())))
            except (json.JSONDecodeError, RecursionError):
                continue
        if len(found) > MOST_DOCUMENTS:
            raise Unreadable(TOO_MANY)
    return found


def _table_or_text(text: str, where: str) -> Opened:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    first = lines[0] if lines else ""
    if any(line.lstrip().startswith("|") for line in lines[:FIRST_LINES]):
        return _plain(text, where)
    if _KEY.match(first):
        return _yaml(text, where)
    if "," in first and not first.lstrip().startswith(("|", "<")):
        return Opened(where=where, shape="csv", documents=_rows(text))
    return _plain(text, where)


def _plain(text: str, where: str) -> Opened:
    return Opened(where=where, shape="text", documents=text.splitlines()[:FIRST_LINES])


def _rows(text: str) -> list[list[str]]:
    """Cut off: a quote that is not closed, or a last line that has no end and fewer cells than the one before."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[list[str]] = []
    cells = 0
    try:
        for row in reader:
            rows.append(row)
            cells += len(row)
            if cells > MOST_CELLS:
                raise Unreadable(MANY_LINES)
    except csv.Error as error:
        said = "is cut off" if "unexpected end" in str(error) else "is no CSV"
        raise Unreadable(f"it {said} in line {max(1, reader.line_num)}.") from None
    if len(rows) > 1 and not text.endswith(("\n", "\r")) and len(rows[-1]) < len(rows[-2]):
        raise Unreadable(f"it is cut off in line {reader.line_num}.")
    return rows


def _yaml(text: str, where: str) -> Opened:
    """Anchors are refused: they can stand for more than any file holds."""
    if len(text) > LARGEST_YAML:
        raise Unreadable(f"it is YAML of more than {LARGEST_YAML // 2**20} MB.")
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.CSafeLoader)):
            raise Unreadable("it is YAML with anchors, which are not read.")
        documents = [_not_too_deep(_finite(document)) for document in yaml.load_all(text, Loader=yaml.CSafeLoader)]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise Unreadable(f"it is no YAML that can be read: line {line}.") from None
    except RecursionError:
        raise Unreadable(TOO_DEEP) from None
    except (yaml.YAMLError, ValueError, OverflowError):
        raise Unreadable("it is no YAML that can be read.") from None
    shape: Shape = "yaml" if any(isinstance(document, dict) for document in documents) else "text"
    return Opened(where=where, shape=shape, documents=documents) if shape == "yaml" else _plain(text, where)


def _finite(value: Any) -> Any:
    """`.inf` and `.nan` are no value."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value
