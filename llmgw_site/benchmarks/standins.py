"""What a pass reads beside the database, made up: hosts that report, engines that count, gateways that are silent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from capacity.ports import Answer, Latencies, NodeReport, Order, Outcome, ReplicaReport, Sample
from capacity.sources.push_store import Pushed

TOKENS_PER_SECOND = 300


class Hosts:
    """A driver whose hosts report the same replicas in every pass, as of `now`, and take every order without doing it."""

    def __init__(self, reports: Sequence[NodeReport], now: datetime) -> None:
        self._reports = reports
        self.now = now

    def observe(self, pool: str) -> Sequence[NodeReport]:
        return [replace(report, at=self.now) for report in self._reports]

    def unreadable(self, pool: str) -> Mapping[str, str]:
        return {}

    def apply(self, order: Order) -> Outcome:
        return Outcome(kind="accepted")


class Engines:
    """Each replica's requests in flight, another number from pass to pass: 7 to 9 of the 10 that it was measured to serve, so
    that nothing is added and nothing taken back."""

    def __init__(self, hosts: Hosts, replicas: Sequence[str]) -> None:
        self._hosts, self._replicas, self._began = hosts, replicas, hosts.now

    def loads(self, pool: str) -> Mapping[str, Sample]:
        seconds = int((self._hosts.now - self._began).total_seconds())
        at = self._hosts.now - timedelta(seconds=2)
        tokens = 10**6 + seconds * TOKENS_PER_SECOND
        return {
            name: Sample(in_flight=7 + (number + seconds // 15) % 3, sampled_at=at, output_tokens_total=tokens)
            for number, name in enumerate(self._replicas)
        }

    def latencies(self, pool: str, replicas: Collection[str]) -> Mapping[str, Latencies]:
        return {}


class Gateways:
    """None has pushed: nothing is held."""

    def read(self, pool: str) -> Pushed:
        return Pushed(pushes=(), arrivals={})


class Nobody:
    """No engine is registered."""

    def answers(self, pool: str) -> Mapping[str, Answer]:
        return {}


def running(name: str, model: str, profile: str, node: str, since: datetime) -> ReplicaReport:
    return ReplicaReport(
        name=name,
        model=model,
        profile=profile,
        nodes=(node,),
        resource="gpu/h100",
        units=1,
        state="ready",
        since=since,
        url=f"http://{node}:8000",
        was_ready=True,
    )
