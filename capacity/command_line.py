"""Command lines that say what is wrong in one sentence: shared by the programs that run with and without Django."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn


class OneLineParser(argparse.ArgumentParser):
    """Without the usage in front of an error, and without abbreviated options."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        refuse(message)


def refuse(message: str) -> NoReturn:
    """End with exit status 2 and one sentence."""
    sys.stderr.write(f"{one_sentence(message)}\n")
    sys.exit(2)


def one_sentence(message: str) -> str:
    """argparse's message without its "argument --x:" in front where ours follows, and with a full stop."""
    head, separator, rest = message.partition(": ")
    text = rest if separator and head.startswith("argument ") and rest.endswith(".") else message
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def say(line: str) -> None:
    """One line on standard output at once, whatever its encoding can write."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(f"{line.encode(encoding, 'backslashreplace').decode(encoding)}\n")
    sys.stdout.flush()
