"""The engine's command line: one sentence for what is wrong; exit status 2 for bad options and what is not installed, 1 where
it cannot start."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from capacity.command_line import OneLineParser, refuse
from capacity.llama import packages


def main(argv: Sequence[str]) -> int:
    parser = OneLineParser("capacity.llama", "llama.cpp's server with a small model.")
    add_arguments(parser)
    options = parser.parse_args(argv)
    try:
        weights = options.weights or packages.weights()
        from capacity.llama.server import serve  # what is not installed is said in a sentence
    except (packages.NotInstalled, ImportError):
        refuse(packages.HOW)
    try:
        serve(options, weights)
    except RuntimeError as failed:
        sys.stderr.write(f"llama.cpp cannot serve {weights.name} on {options.host} port {options.port}: {failed}\n")
        return 1
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=_whole(1, 65_535), required=True)
    parser.add_argument("--model", required=True, metavar="NAME", help="the name that requests ask for")
    parser.add_argument("--threads", type=_whole(1, 64), default=1, help="more than free cores make it many times slower")
    parser.add_argument("--slots", type=_whole(1, 64), default=4, help="requests that are worked on at once; more wait")
    parser.add_argument("--context", type=_whole(128, 131_072), default=1024, metavar="TOKENS", help="prompt and answer, a slot")
    parser.add_argument("--weights", type=Path, metavar="FILE", help="a GGUF file (default: the one of the package)")


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"write a whole number from {low} to {high}, not {text[:40]!r}.")
        return int(text)

    return parse
