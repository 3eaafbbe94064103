"""A wrong call of a program ends with one sentence: shared by those that run with and without Django."""

from __future__ import annotations

import sys
from typing import NoReturn
from unicodedata import category


def refuse(message: str) -> NoReturn:
    """End with exit status 2 and one sentence."""
    sys.stderr.write(f"{one_sentence(message)}\n")
    sys.exit(2)


def one_sentence(message: str) -> str:
    """argparse's message without its "argument --x:" in front where ours follows, and with a full stop."""
    head, separator, rest = message.partition(": ")
    text = rest if separator and head.startswith("argument ") and rest.endswith(".") else message
    return in_one_line(text[:1].upper() + text[1:] + ("" if text.endswith(".") else "."))


def in_one_line(text: str) -> str:
    """What a person or a file wrote, as a terminal may show it: control characters and line ends as their escapes."""
    return "".join(_escaped(letter) if category(letter) in _OBEYED else letter for letter in text)


def in_lines(text: str) -> str:
    """As `in_one_line`, with its own line ends."""
    return "\n".join(map(in_one_line, text.split("\n")))


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


_OBEYED = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode's categories of what a terminal obeys or cannot show, and never prints."""
