"""llama.cpp's server in this process, until a signal ends it."""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path

import xllamacpp

from capacity.command_line import say

# threads that only wait for requests; each open stream holds one
HTTP_THREADS = 32


def serve(options: argparse.Namespace, weights: Path) -> None:
    """RuntimeError where it does not start."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server = xllamacpp.Server(parameters(options, weights))
    say(f"Serving {options.model} at {server.listening_address} with {options.threads} threads and {options.slots} slots.")
    stop.wait()
    del server  # it ends its own threads, and with them what is still streaming


def parameters(options: argparse.Namespace, weights: Path) -> xllamacpp.CommonParams:
    found = xllamacpp.CommonParams()
    found.model.path = str(weights)
    found.model_alias = {options.model}
    found.hostnames = [options.host]
    found.port = options.port
    found.cpuparams.n_threads = found.cpuparams_batch.n_threads = options.threads
    found.n_threads_http = HTTP_THREADS
    found.n_parallel = options.slots
    found.n_ctx = options.slots * options.context
    found.endpoint_metrics = found.endpoint_slots = True
    found.warmup = False
    found.verbosity = 1
    return found
