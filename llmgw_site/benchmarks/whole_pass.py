"""A whole pass with its rows in the database: from reading the lease to giving it back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from capacity.last_good_views import load_measurements, load_policies
from capacity.ports import NodeReport, ReplicaReport
from capacity.reconcile import pools, run_pass
from capacity.token_rates import TokenRates
from capacity.wiring import Deps
from quotas.domain.last_good import LastGood

from .pool_rows import DEVICE, INTERVAL, PoolRows, make_pool_rows, make_samples
from .sizes import Sizes
from .standins import Engines, Gateways, Hosts, Nobody, running
from .timing import Figure, timed


class Fleet:
    """A pool in the database with the stand-ins of its hosts and engines. Each pass is 15 s after the one before, so that every
    second one reads quotas and measurements anew."""

    def __init__(self, rows: PoolRows, now: datetime) -> None:
        self._name = rows.pool.name
        self._hosts = Hosts(_reports(rows, now), now)
        self._deps = Deps(
            driver=self._hosts,
            loads=Engines(self._hosts, [replica.name for replica in rows.replicas]),
            answers=Nobody(),
            pushes=Gateways(),  # type: ignore[arg-type]
            policies=LastGood(load_policies),
            measurements=LastGood(load_measurements),
            rates=TokenRates(),
            holder="bench",
            installation="bench",
        )
        self.queries: list[int] = []

    def advance(self) -> None:
        self._hosts.now += INTERVAL

    def a_pass(self) -> None:
        lease, counter = pools(name=self._name)[0], Counter()
        with connection.execute_wrapper(counter):
            report = run_pass(self._deps, lease, self._hosts.now)
        if report.outcome != "done":
            raise RuntimeError(f"the pass ended as {report.outcome}: {report.error}")
        self.queries.append(counter.count)


class Counter:
    """Counts what is asked of the database; a transaction's begin and end are none of it."""

    FRAME = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.count += not sql.startswith(self.FRAME)
        return execute(sql, params, many, context)


def measure(sizes: Sizes, now: datetime) -> list[Figure]:
    small = make_fleet("small", now, sizes, sizes.small_models)
    few = steady_queries(small, passes=4)
    large = make_fleet("large", now, sizes, sizes.pass_models)
    return [pass_time(large, sizes.pass_runs), pass_queries(large, f"{few} at {sizes.small_models} models")]


def make_fleet(name: str, now: datetime, sizes: Sizes, models: int) -> Fleet:
    rows = make_pool_rows(name, now, models=models, replicas_each=sizes.pass_replicas_each, nodes=sizes.pass_nodes)
    samples = sizes.window_samples + sizes.older_samples
    make_samples(rows, now - INTERVAL, samples, lambda number, place: 7 + (number + place) % 3)
    return Fleet(rows, now)


def pass_time(fleet: Fleet, runs: int) -> Figure:
    fleet.a_pass()  # writes every model's first decision
    timing = timed(fleet.a_pass, runs, before=fleet.advance)
    note = f"median {timing.words}"
    return Figure(name="pass_sqlite_10k_replicas_ms", value=timing.median_ms, unit="ms", target=1000, note=note)


def pass_queries(fleet: Fleet, beside: str) -> Figure:
    """The most of the passes so far but the first, in which every decision is new."""
    first, *steady = fleet.queries
    note = f"the most of {len(steady)} passes; {beside}; {first} in the first pass, which writes every decision"
    return Figure(name="pass_queries", value=max(steady), unit="queries", target=12, note=note)


def steady_queries(fleet: Fleet, passes: int) -> int:
    """The most queries of that many passes after the first; quotas and measurements are read anew in every second one."""
    for _ in range(passes + 1):
        fleet.a_pass()
        fleet.advance()
    return max(fleet.queries[1:])


def _reports(rows: PoolRows, now: datetime) -> Sequence[NodeReport]:
    on_node: dict[str, list[ReplicaReport]] = defaultdict(list)
    for replica in rows.replicas:
        node = replica.nodes[0]
        on_node[node].append(running(replica.name, replica.model.name, replica.profile.name, node, replica.since))
    return [
        NodeReport(
            node=node.name,
            pool=rows.pool.name,
            at=now - timedelta(seconds=1),
            resources={DEVICE: node.resources[DEVICE]},
            replicas=tuple(on_node[node.name]),
        )
        for node in rows.nodes
    ]
