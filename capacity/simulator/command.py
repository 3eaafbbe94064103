"""The simulator's command line: one sentence for what is wrong; exit status 2 for bad options, 1 for a port that is taken."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from capacity.command_line import OneLineParser, refuse, say
from capacity.simulator.options import EngineOptions, add_arguments, options_of


def main(argv: Sequence[str]) -> int:
    parser = OneLineParser("capacity.simulator", "A simulated inference engine.")
    add_arguments(parser)
    try:
        options = options_of(parser.parse_args(argv))
    except ValueError as wrong:
        refuse(str(wrong))
    return run(options)


def run(options: EngineOptions) -> int:
    """Serve until told to stop; the exit status."""
    from capacity.simulator.server import serve  # bad options are answered before the HTTP library is loaded

    try:
        asyncio.run(serve(options, say))
    except OSError as failed:
        sys.stderr.write(f"Cannot listen on {options.host} port {options.port}: {failed.strerror or failed}.\n")
        return 1
    return 0
