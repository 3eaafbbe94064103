"""The simulator's command line: one sentence for what is wrong; exit status 2 for bad options, 1 for a port that is taken."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import NoReturn

from capacity.simulator.options import EngineOptions, add_arguments, options_of


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{one_sentence(message)}\n")


def main(argv: Sequence[str]) -> int:
    parser = _Parser(prog="capacity.simulator", description="A simulated inference engine.", allow_abbrev=False)
    add_arguments(parser)
    try:
        return run(options_of(parser.parse_args(argv)))
    except ValueError as wrong:
        parser.error(str(wrong))


def run(options: EngineOptions) -> int:
    """Serve until told to stop; the exit status."""
    from capacity.simulator.server import serve  # bad options are answered before the HTTP library is loaded

    try:
        asyncio.run(serve(options, _say))
    except OSError as failed:
        sys.stderr.write(f"Cannot listen on {options.host} port {options.port}: {failed.strerror or failed}.\n")
        return 1
    return 0


def one_sentence(message: str) -> str:
    """argparse's message without its "argument --x:" in front where ours follows, and with a full stop."""
    head, separator, rest = message.partition(": ")
    text = rest if separator and head.startswith("argument ") and rest.endswith(".") else message
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
