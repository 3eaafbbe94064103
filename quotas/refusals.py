"""A wrong call of a program ends with one sentence: shared by those that run with and without Django."""

from __future__ import annotations

import sys
from typing import NoReturn


def refuse(message: str) -> NoReturn:
    """End with exit status 2 and one sentence."""
    sys.stderr.write(f"{one_sentence(message)}\n")
    sys.exit(2)


def one_sentence(message: str) -> str:
    """argparse's message without its "argument --x:" in front where ours follows, and with a full stop."""
    head, separator, rest = message.partition(": ")
    text = rest if separator and head.startswith("argument ") and rest.endswith(".") else message
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
