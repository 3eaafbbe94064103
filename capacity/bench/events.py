"""The lines of one streamed answer (pure): when text came, how much of it, and what the answer says of itself.

Most lines carry one token and nothing else of interest; they are told by their bytes. JSON is read of those alone that carry a
usage or an error.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

MOST_LINE_BYTES: Final = 4 * 1024 * 1024
MOST_CHUNKS: Final = 1_000_000
MOST_TOKENS: Final = 100_000_000
SENTENCE_CHARACTERS: Final = 200

# quotes inside of a text are escaped on the wire, so that no text can look like one of these
_TEXT = re.compile(rb'"(?:content|text|reasoning_content|reasoning)"\s*:\s*"(?!")')
_READ = re.compile(rb'"usage"\s*:\s*\{|"error"\s*:\s*["{]|"object"\s*:\s*"error"')
_FINISHED = re.compile(rb'"finish_reason"\s*:\s*"')


@dataclass(slots=True)
class Events:
    """What was heard so far. Times are seconds of the caller's steady clock.

    `chunks`: events with text. `gaps`: seconds between each and the one before it. `finished`: the answer said that it is whole.
    `error`: what it says went wrong, although its status was 200. `most_chunks`: what sends more of them never ends."""

    most_chunks: int = MOST_CHUNKS
    first_at: float | None = None
    last_at: float | None = None
    chunks: int = 0
    gaps: list[float] = field(default_factory=list)
    input_tokens: int | None = None
    output_tokens: int | None = None
    finished: bool = False
    error: str | None = None
    whole: bool = False
    """One JSON document came instead of a stream."""
    _rest: bytes = b""
    _whole: bytes = b""

    def feed(self, data: bytes, at: float) -> int:
        """Take what came, split anywhere; how many chunks of text are in it."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MOST_LINE_BYTES:
            self.error, self._rest = f"It sent a line of more than {MOST_LINE_BYTES} bytes.", b""
        heard = self._heard(sum(self._line(line) for line in lines if line), at)
        if self.chunks > self.most_chunks:
            self.error = f"more than {self.most_chunks} pieces of text came, far more than were asked for."
        return heard

    def end(self, at: float) -> None:
        """The answer is over: its last line may lack an end."""
        last, self._rest = self._rest, b""
        if self._line(last):
            self._heard(1, at)
        if self._whole:
            self.whole = True
            self._error(_object(self._whole) or {})

    def _heard(self, chunks: int, at: float) -> int:
        if chunks:
            self.gaps += [0.0] * (chunks - 1) if self.last_at is None else [at - self.last_at, *[0.0] * (chunks - 1)]
            self.first_at = at if self.first_at is None else self.first_at
            self.last_at = at
            self.chunks += chunks
        return chunks

    def _line(self, line: bytes) -> bool:
        """Whether the line carries text."""
        if not line.startswith(b"data:"):
            self._other(line)
            return False
        if _READ.search(line):
            self._read(line)
        if _FINISHED.search(line) or line[5:].strip() == b"[DONE]":
            self.finished = True
        return _TEXT.search(line) is not None

    def _other(self, line: bytes) -> None:
        """A line outside of the stream: some engines write `error: {…}`, and who does not stream writes one document."""
        if line.startswith(b"error:"):
            self.error = said({"error": _object(line[6:]) or printable(line[6:].decode(errors="replace"))})
        elif len(self._whole) < MOST_LINE_BYTES and (self._whole or (line.lstrip().startswith(b"{") and not self.chunks)):
            self._whole += line

    def _read(self, line: bytes) -> None:
        document = _object(line[5:])
        if document is not None:
            self._usage(document.get("usage"))
            self._error(document)

    def _error(self, document: dict[str, Any]) -> None:
        if document.get("object") == "error" or document.get("error"):
            self.error = said(document)

    def _usage(self, usage: object) -> None:
        if isinstance(usage, dict):
            self.input_tokens = count(usage.get("prompt_tokens"), self.input_tokens)
            self.output_tokens = count(usage.get("completion_tokens"), self.output_tokens)


def said(document: object) -> str:
    """The sentence in an error's document, in what shape it is; empty where there is none."""
    if isinstance(document, dict):
        for key in ("error", "message", "detail"):
            if found := said(document[key]) if isinstance(document.get(key), dict) else document.get(key):
                return printable(str(found))
    return ""


def printable(text: str) -> str:
    """A server's own words: short, on one line, without what a terminal would obey."""
    return " ".join("".join(one if one.isprintable() else " " for one in text[:SENTENCE_CHARACTERS]).split())


def count(value: object, otherwise: int | None = None) -> int | None:
    """A number of tokens, or `otherwise` where it is none that an answer can have."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else otherwise


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
