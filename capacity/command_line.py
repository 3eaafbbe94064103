"""Command lines that say what is wrong in one sentence: shared by the programs that run with and without Django."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from quotas.refusals import one_sentence, refuse

__all__ = ["OneLineParser", "one_sentence", "refuse", "say"]


class OneLineParser(argparse.ArgumentParser):
    """Without the usage in front of an error, and without abbreviated options."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        refuse(message)


def say(line: str) -> None:
    """One line on standard output at once, whatever its encoding can write."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(f"{line.encode(encoding, 'backslashreplace').decode(encoding)}\n")
    sys.stdout.flush()
