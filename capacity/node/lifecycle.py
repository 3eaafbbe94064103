"""What one look at a replica changes. Pure: the agent looks and acts, this decides.

starting → ready ⇄ unready → draining → gone, and from each of them → exited
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from capacity.node.record import Record

UNHEALTHY_IN_A_ROW = 3
QUIET_LOOKS = 2

Act = Literal["nothing", "terminate", "kill", "gone", "exited"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds that a host keeps to. The grace lets gateways stop sending before silence is believed."""

    routing_grace_seconds: float = 5
    kill_after_seconds: float = 10
    keep_exited_seconds: float = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What a few looks in a row said; not written down, so it begins afresh after a restart."""

    unhealthy: int = 0
    quiet: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One look. `healthy` and `in_flight` None: not asked, or no answer (which is never 0)."""

    alive: bool
    healthy: bool | None = None
    in_flight: int | None = None


def step(record: Record, watch: Watch, seen: Seen, now: datetime, timing: Timing) -> tuple[Record, Watch, Act]:
    """The record after a look, the counters after it, and what is to be done to the process."""
    if record.state == "exited":
        expired = now - record.since >= timedelta(seconds=timing.keep_exited_seconds)
        return record, watch, "gone" if expired else "nothing"
    if not seen.alive:
        return record, watch, "gone" if record.ending_since else "exited"
    if record.ending_since:
        overdue = now - record.ending_since >= timedelta(seconds=timing.kill_after_seconds)
        return record, watch, "kill" if overdue else "nothing"
    watch = _watched(watch, seen)
    if record.state == "draining":
        return record, watch, "terminate" if _drained(record, watch, now, timing) else "nothing"
    return _after_health(record, watch, seen, now), watch, "nothing"


def state_when_taken_back(watch: Watch) -> Literal["ready", "unready"]:
    """What a draining replica becomes when its drain is taken back."""
    return "unready" if watch.unhealthy >= UNHEALTHY_IN_A_ROW else "ready"


def _watched(watch: Watch, seen: Seen) -> Watch:
    unhealthy = watch.unhealthy if seen.healthy is None else 0 if seen.healthy else watch.unhealthy + 1
    return Watch(unhealthy=unhealthy, quiet=watch.quiet + 1 if seen.in_flight == 0 else 0)


def _drained(record: Record, watch: Watch, now: datetime, timing: Timing) -> bool:
    draining = now - record.since
    if draining >= timedelta(seconds=record.drain_timeout_seconds):
        return True
    return draining >= timedelta(seconds=timing.routing_grace_seconds) and watch.quiet >= QUIET_LOOKS


def _after_health(record: Record, watch: Watch, seen: Seen, now: datetime) -> Record:
    if seen.healthy and record.state != "ready":
        return replace(record, state="ready", since=now, was_ready=True)
    if record.state == "ready" and watch.unhealthy >= UNHEALTHY_IN_A_ROW:
        return replace(record, state="unready", since=now)
    return record
