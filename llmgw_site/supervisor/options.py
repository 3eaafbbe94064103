"""The options of `manage.py up`."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Port, address, and whether an empty database gets the example."""
    parser.add_argument("--port", type=_port, default=8000, help="where pages and API answer (8000)")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1: this machine alone)")
    parser.add_argument(
        "--demo", action=argparse.BooleanOptionalAction, default=True, help="start the example when the database is empty"
    )
    parser.add_argument("--llama", action="store_true", help="start the example with real llama.cpp engines (make setup-llama)")


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(f"{text} is no port: write a whole number from 1 to 65535")
    return int(text)
