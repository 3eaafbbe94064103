"""What an engine simulator is told, shared by `python -m capacity.simulator` and `manage.py engine`."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

_UNFIT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
MAX_RUNNING_PER_CAPACITY = 4  # as engines admit more requests than they serve within an objective


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """`capacity`: requests in flight that are served at the stated times; `max_running`: more than that wait in the queue.

    Up to `capacity` the first token comes within `ttft_seconds` and each further one within `tpot_seconds`."""

    host: str = "127.0.0.1"
    port: int = 8000
    model: str = "simulated"
    capacity: int = 8
    ttft_seconds: float = 0.2
    tpot_seconds: float = 0.04
    max_running: int = 32
    load_seconds: float = 0.0
    seed: int = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=_whole("port", 0, 65_535), required=True, help="port to listen on; 0 takes a free one")
    parser.add_argument("--model", type=_name, required=True, metavar="NAME", help="the model's served name")
    parser.add_argument(
        "--capacity", type=_whole("capacity", 1, 100_000), default=8, metavar="N", help="requests in flight served at full speed"
    )
    parser.add_argument(
        "--ttft-ms", type=_decimal("ttft-ms", 0, 600_000), default=200.0, metavar="MS", help="time to first token"
    )
    parser.add_argument(
        "--tpot-ms", type=_decimal("tpot-ms", 0.1, 60_000), default=40.0, metavar="MS", help="time per output token"
    )
    parser.add_argument(
        "--max-running",
        type=_whole("max-running", 1, 1_000_000),
        metavar="N",
        help=f"requests above this wait in the queue (default {MAX_RUNNING_PER_CAPACITY} × capacity)",
    )
    parser.add_argument(
        "--load-seconds", type=_decimal("load-seconds", 0, 86_400), default=0.0, metavar="S", help="/health is 503 so long"
    )
    parser.add_argument("--seed", type=_whole("seed", 0, 2**63), default=0, metavar="N", help="seed of the jitter (default 0)")


def options_of(values: argparse.Namespace) -> EngineOptions:
    """The options out of parsed arguments; ValueError with one sentence where they contradict each other."""
    max_running = values.max_running or MAX_RUNNING_PER_CAPACITY * values.capacity
    if max_running < values.capacity:
        raise ValueError(f"max-running ({max_running}) is below capacity ({values.capacity}): the capacity could never be used.")
    return EngineOptions(
        host=values.host,
        port=values.port,
        model=values.model,
        capacity=values.capacity,
        ttft_seconds=values.ttft_ms / 1000,
        tpot_seconds=values.tpot_ms / 1000,
        max_running=max_running,
        load_seconds=values.load_seconds,
        seed=values.seed,
    )


def _whole(name: str, low: int, high: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 20 and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"{name} is a whole number from {low} to {high}, not {text[:40]!r}.")
        return int(text)

    return convert


def _decimal(name: str, low: float, high: float) -> Callable[[str], float]:
    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{name} is a number from {low:g} to {high:g}, not {text[:40]!r}.")
        return value

    return convert


def _name(text: str) -> str:
    if not text.strip() or len(text) > 200 or _UNFIT.search(text):
        raise argparse.ArgumentTypeError("model is a name of 1 to 200 characters without control characters.")
    return text
