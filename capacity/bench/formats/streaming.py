"""A file of any size without its per-request lists, so that memory is bounded by what is left.

Load generators write each request beside their figures: 200 MB of times and prompts around 200 kB of percentiles. The text is
scanned once; where a key such as `ttfts` or `generated_texts` has a list, that list is passed over to its end and stands in the
result as `[]`. What is left is JSON (or whatever it was) for an ordinary parser.
"""

from __future__ import annotations

import mmap
import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from capacity.bench.formats.contract import Unreadable

PER_REQUEST: Final = (
    *("requests", "successful", "errored", "incomplete", "total"),  # GuideLLM
    *("input_lens", "output_lens", "prompt_lens", "ttfts", "itls", "tpots", "latencies", "e2els", "errors", "generated_texts"),
    *("start_times", "end_times", "queue_times", "client_queue_times", "request_times", "timestamps"),
    *("cumulative_distribution_function", "pdf", "prompts", "outputs", "responses"),
)
"""Keys whose *lists* are cut out; an object or a number of the same name stays (`request_totals.successful: 46`)."""

LARGEST_REST: Final = 16 * 2**20
MOST_TOKENS: Final = 1_000_000
DEEPEST: Final = 64
TOO_DEEP: Final = f"its objects and lists are nested deeper than {DEEPEST}; no benchmark writes that."

Buffer = bytes | mmap.mmap

_TEXT: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+'
_CUT: Final = rb'"(?:' + "|".join(PER_REQUEST).encode() + rb')"\s*+:\s*+\['
_TOKEN: Final = re.compile(rb"(?P<cut>" + _CUT + rb")|(?P<text>" + _TEXT + rb'"?+)|(?P<open>[\[{])|(?P<close>[\]}])', re.DOTALL)
_FLAT: Final = re.compile(rb'[^"\[\]{}]*+(?:' + _TEXT + rb'"[^"\[\]{}]*+)*+', re.DOTALL)
_WHOLE: Final = re.compile(rb'[^"]*+(?:' + _TEXT + rb'"[^"]*+)*+', re.DOTALL)
_QUOTED: Final = re.compile(_TEXT + rb'"', re.DOTALL)
_FIRST: Final = re.compile(rb"^[ \t\r\xef\xbb\xbf]*+(?=[\[{])", re.MULTILINE)
_NEXT: Final = re.compile(rb"[\s,]*+(?=[\[{])")
_STEP: Final = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
_OTHERS: Final = bytes(set(range(256)) - set(b"[]{}"))
_SIGNED: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_PIECE: Final = 2**18
_SHORT: Final = 2**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Slimmed:
    """What is left of a file. `cut_off`: it ended within an object or a list; `lines` counts those of the whole file."""

    text: bytes
    lines: int
    cut_off: bool
    removed: tuple[tuple[int, int], ...] = ()
    """(line of `text` from 1, lines that were cut out of it), rising."""

    def line_of(self, line: int) -> int:
        """The line of the file that `line` (from 1) of `text` was."""
        sums = list(accumulate((count for _, count in self.removed), initial=0))
        return line + sums[bisect_right([place for place, _ in self.removed], line - 1)]


def slim(buffer: Buffer) -> Slimmed:
    """`buffer` without its per-request lists. Unreadable: nested too deep, or more is left than a result file can hold."""
    scan = _Scan(buffer=buffer)
    scan.run()
    lines = scan.passed_lines + scan.kept.count(b"\n") + (not scan.kept.endswith(b"\n"))
    return Slimmed(text=bytes(scan.kept), lines=lines, cut_off=scan.depth > 0, removed=tuple(scan.removed))


@dataclass(slots=True)
class _Scan:
    """`at`: how far the buffer is read; `begun`: from where on it is not yet kept; `depth` of open objects and lists."""

    buffer: Buffer
    kept: bytearray = field(default_factory=bytearray)
    removed: list[tuple[int, int]] = field(default_factory=list)
    passed_lines: int = 0
    kept_lines: int = 0
    tokens: int = 0
    depth: int = 0
    at: int = 0
    begun: int = 0

    def run(self) -> None:
        while self._document():
            pass
        self.at = len(self.buffer)
        self._keep()

    def _document(self) -> bool:
        """Over the next object or list; what stands between two of them (a tool's other lines) is kept. False at the end."""
        begin = _NEXT.match(self.buffer, self.at) if self.at else None
        begin = begin or _FIRST.search(self.buffer, self.at)
        if begin is None:
            return False
        self.at = begin.end()
        while self._token():
            if self.depth == 0:
                return True
        return False

    def _token(self) -> bool:
        token = _TOKEN.search(self.buffer, self.at)
        if token is None:
            return False
        self.at = token.end()
        self._count()
        if token.lastgroup == "cut":
            return self._cut()
        self.depth += {"open": 1, "close": -1}.get(token.lastgroup or "", 0)
        if self.depth > DEEPEST:
            raise Unreadable(TOO_DEEP)
        return True

    def _count(self) -> None:
        self.tokens += 1
        if self.tokens > MOST_TOKENS or len(self.kept) + self.at - self.begun > LARGEST_REST:
            raise Unreadable(_TOO_MUCH)

    def _cut(self) -> bool:
        """Over a list whose `[` was just read, up to its `]`; False where the file ends within it."""
        self._keep()
        self.depth += 1
        inside = self._step(1, self.at + _SHORT)
        while inside and self.at < len(self.buffer):
            before = self.at
            inside = self._leap(inside)
            inside = self._step(inside, self.at + _PIECE)
            if self.at == before:
                break
        self.at -= not inside
        self._leave_out()
        return not inside

    def _step(self, inside: int, until: int) -> int:
        """Bracket by bracket; how many are open at `until`, or 0 right behind the last one."""
        while inside and self.at < until:
            match = _FLAT.match(self.buffer, self.at)
            self.at = match.end() if match else self.at
            step = _STEP.get(self.buffer[self.at : self.at + 1])
            if step is None:
                break
            inside += step
            self.at += 1
        return inside

    def _leap(self, inside: int) -> int:
        """Piece by piece, as long as the list cannot end in it: millions of brackets would take minutes one by one."""
        while piece := self.buffer[self.at : self.at + _PIECE]:
            match = _WHOLE.match(piece)
            whole = piece[: match.end() if match else 0]
            steps = array("b", _QUOTED.sub(b"", whole).translate(_SIGNED, _OTHERS))
            if not whole or inside + min(accumulate(steps), default=0) <= 0:
                break
            inside += sum(steps)
            self.at += len(whole)
            _forget(self.buffer, self.at - len(whole), self.at)
        return inside

    def _keep(self) -> None:
        if len(self.kept) + self.at - self.begun > LARGEST_REST:
            raise Unreadable(_TOO_MUCH)
        piece = self.buffer[self.begun : self.at]
        self.kept += piece
        self.kept_lines += piece.count(b"\n")
        self.begun = self.at

    def _leave_out(self) -> None:
        """Up to `at`, but for its line ends, which are only counted."""
        lines = 0
        for start in range(self.begun, self.at, _PIECE):
            lines += self.buffer[start : min(start + _PIECE, self.at)].count(b"\n")
            _forget(self.buffer, start, min(start + _PIECE, self.at))
        if lines:
            self.removed.append((self.kept_lines + 1, lines))
            self.passed_lines += lines
        self.begun = self.at


_TOO_MUCH: Final = (
    f"it is too large: without its per-request lists more than {LARGEST_REST // 2**20} MB or {MOST_TOKENS:,} values are left. "
    "Import the tool's summary instead of single requests."
)


def _forget(buffer: Buffer, start: int, end: int) -> None:
    """Pages of a mapped file that were read need not stay in memory."""
    first = start - start % mmap.PAGESIZE
    if isinstance(buffer, mmap.mmap) and end - first >= mmap.PAGESIZE:
        buffer.madvise(mmap.MADV_DONTNEED, first, end - end % mmap.PAGESIZE - first)
