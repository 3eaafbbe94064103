"""`manage.py plan`: a snapshot from a file or stdin, its plan on stdout. No Django, database or Redis is needed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO, TextIO

from capacity.command_line import OneLineParser
from capacity.domain import InvalidSnapshot, loads, parse_snapshot, plan, plan_document
from capacity.domain.plan_table import table

FAULT_FORMAT = "llmgw.fault/1"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="a snapshot (JSON), or - for stdin")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="json is the machine's form")
    parser.add_argument("--lines", action="store_true", help="one snapshot a line in, one plan or fault document a line out")


def run(argv: Sequence[str], stdin: BinaryIO | None = None, stdout: TextIO | None = None, stderr: TextIO | None = None) -> int:
    """The whole command; the exit status: 0 a plan was printed (with --lines: the input has ended), 2 it could not be."""
    parser = OneLineParser(prog="manage.py plan", description=__doc__ or "")
    arguments(parser)
    options = parser.parse_args(argv)
    return answer(
        options.file, options.format, options.lines, stdin or sys.stdin.buffer, stdout or sys.stdout, stderr or sys.stderr
    )


def answer(file: str, form: str, lines: bool, stdin: BinaryIO, stdout: TextIO, stderr: TextIO) -> int:
    """Plan for `file` (or `stdin` for -) in the `form` table or json; with `lines` for each of its lines, always as json."""
    try:
        if file == "-":
            return _stream(stdin, stdout) if lines else _piped(stdin.read(), form, stdout, stderr)
        with open(file, "rb") as opened:
            return _stream(opened, stdout) if lines else _single(opened.read(), form, stdout, stderr)
    except BrokenPipeError:
        # Whoever read has read enough.
        return 0
    except OSError as error:
        _write(stderr, f"{file}: {error.strerror or error}")
        return 2


def _piped(text: bytes, form: str, stdout: TextIO, stderr: TextIO) -> int:
    """What comes before the pipe has said why it printed nothing."""
    if not text.strip():
        _write(stderr, "$: stdin is empty.")
        return 2
    return _single(text, form, stdout, stderr)


def _single(text: bytes, form: str, stdout: TextIO, stderr: TextIO) -> int:
    try:
        found = plan(parse_snapshot(loads(text)))
    except InvalidSnapshot as invalid:
        for fault in invalid.faults:
            _write(stderr, f"{fault.path}: {fault.message}")
        return 2
    _write(stdout, json.dumps(plan_document(found), indent=1) if form == "json" else table(found))
    return 0


def _stream(lines: Iterable[bytes], stdout: TextIO) -> int:
    for line in lines:
        stdout.write(json.dumps(_line(line)) + "\n")
        stdout.flush()
    return 0


def _line(text: bytes) -> dict[str, Any]:
    try:
        return plan_document(plan(parse_snapshot(loads(text))))
    except InvalidSnapshot as invalid:
        return {"format": FAULT_FORMAT, "faults": [{"path": fault.path, "message": fault.message} for fault in invalid.faults]}


def _write(stream: TextIO, text: str) -> None:
    """Text in whatever the stream can show; what it cannot is escaped."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
