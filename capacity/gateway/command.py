"""The example gateway's command line and its running: one sentence for what is wrong, exit status 2."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from capacity.command_line import OneLineParser, refuse
from capacity.gateway.load_plan import BUILT_IN, LoadPlan, parse_load_plan

MAX_PLAN_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    api: str
    token_file: Path
    pool: str
    plan: LoadPlan
    source: str
    seed: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--api", required=True, metavar="URL", help="the control plane, such as http://127.0.0.1:8000")
    parser.add_argument(
        "--token-file", required=True, type=Path, metavar="FILE", help="a file with the API token; read at each call"
    )
    parser.add_argument("--pool", default="example", help="the pool to route in (default example)")
    parser.add_argument("--shape", default="builtin", metavar="FILE", help="a load plan as JSON, or builtin (the default)")
    parser.add_argument("--source", metavar="NAME", help="the name to push under (default gateway-HOST)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the arrivals (default 0)")


def options_of(values: argparse.Namespace) -> GatewayOptions:
    """The options out of parsed arguments; ValueError with one sentence."""
    return GatewayOptions(
        api=_api(values.api),
        token_file=values.token_file,
        pool=values.pool,
        plan=_plan(values.shape),
        source=values.source or f"gateway-{socket.gethostname()}"[:200],
        seed=values.seed,
    )


def main(argv: Sequence[str]) -> int:
    parser = OneLineParser("capacity.gateway", "An example gateway with a made-up load.")
    add_arguments(parser)
    try:
        options = options_of(parser.parse_args(argv))
    except ValueError as wrong:
        refuse(str(wrong))
    return run(options)


def run(options: GatewayOptions) -> int:
    """Route and send until SIGTERM or SIGINT; the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stdout)
    asyncio.run(_run(options))
    return 0


async def _run(options: GatewayOptions) -> None:
    from capacity.gateway.gateway import Gateway  # bad options are answered before the HTTP library is loaded

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with Gateway.opened(options) as gateway:
        await gateway.run(stop)


def _api(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not parts.username
    except ValueError:
        good = False
    if not good:
        raise ValueError("--api must be a URL such as http://127.0.0.1:8000, without a user or a password.")
    return url.rstrip("/")


def _plan(shape: str) -> LoadPlan:
    if shape == "builtin":
        return BUILT_IN
    try:
        with Path(shape).open("rb") as file:
            text = file.read(MAX_PLAN_BYTES + 1)
    except OSError as failed:
        raise ValueError(f"The load plan {shape} cannot be read: {failed.strerror}.") from None
    if len(text) > MAX_PLAN_BYTES:
        raise ValueError(f"The load plan {shape} is larger than {MAX_PLAN_BYTES} bytes.")
    try:
        return parse_load_plan(text.decode("utf-8", "replace"))
    except ValueError as wrong:
        raise ValueError(f"{shape}: {wrong}") from None
