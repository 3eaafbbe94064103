"""What a model is asked and what is ready for it, as a sentence by the numbers of one pass."""

from __future__ import annotations

from ..models import Sample
from .board import is_unknown


def asked(sample: Sample) -> str:
    """`at least 7 requests in flight on 3 ready replicas that …`, without a full stop; held ones run on no replica."""
    held = sample.held_requests or 0
    running = max(0, sample.demand_low - held)
    if not sample.ready:
        return f"{_without_ready(sample, running, held)} and no replica is ready"
    return f"{_running(sample, running)} on {_ready(sample)}{_waiting(running, held)}"


def _waiting(running: int, held: int) -> str:
    if not held:
        return ""
    return f"; {held:,} {'more ' if running else ''}{'is' if held == 1 else 'are'} held at the gateway"


def _without_ready(sample: Sample, running: int, held: int) -> str:
    if held:
        return f"{_requests(held)} held at the gateway"
    if sample.held_requests is None:
        return "an unknown number of requests held at the gateway"
    return f"{_requests(running)} in flight"


def _running(sample: Sample, running: int) -> str:
    if not is_unknown(sample):
        return f"{_requests(running)} in flight"
    return f"at least {_requests(running)} in flight" if running else "an unknown number of requests in flight"


def _ready(sample: Sample) -> str:
    replicas = f"{sample.ready:,} ready replica{'' if sample.ready == 1 else 's'}"
    if not sample.capacity_ready:
        return f"{replicas} without a measured capacity"
    return f"{replicas} that {'was' if sample.ready == 1 else 'were'} measured to serve {sample.capacity_ready:,}"


def _requests(count: int) -> str:
    return f"{count:,} request{'' if count == 1 else 's'}"
