"""A whole pool for tests of passes: rows in the database, a fleet in memory, loads that are set by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from capacity.drivers.fake import FakeFleet
from capacity.last_good_views import Measurements, load_measurements, load_policies
from capacity.models import Lease
from capacity.ports import Answer, Latencies, Sample
from capacity.reconcile import PassReport, pools, run_pass
from capacity.sources.push_store import Pushed
from capacity.tests.factories import make_measurement, make_model, make_node, make_pool, make_profile
from capacity.token_rates import TokenRates
from capacity.wiring import Deps, make_deps
from quotas.domain.last_good import LastGood

INSTALLATION = "here"
START = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Loads:
    """Engines' own counts: what the fleet in memory works on, read at its own instant. `histograms`: latencies, set by hand."""

    def __init__(self, fleet: FakeFleet) -> None:
        self._fleet = fleet
        self.unknown: set[str] = set()
        self.histograms: dict[str, Latencies] = {}

    def latencies(self, pool: str, replicas: Collection[str]) -> Mapping[str, Latencies] | None:
        return {name: self.histograms[name] for name in replicas if name in self.histograms}

    def loads(self, pool: str) -> Mapping[str, Sample] | None:
        now = self._fleet.now()
        reports = self._fleet.observe(pool) or ()
        names = [replica.name for report in reports for replica in report.replicas]
        return {
            name: Sample(in_flight=self._fleet.in_flight.get(name, 0), sampled_at=now)
            for name in names
            if name not in self.unknown
        }


class Answers:
    """Whether registered engines answer: set by hand."""

    def __init__(self) -> None:
        self.found: dict[str, Answer] = {}

    def answers(self, pool: str) -> Mapping[str, Answer]:
        return self.found


class Pushes:
    """What gateways said; set `pushes` and `arrivals`. `away`: Redis does not answer."""

    def __init__(self) -> None:
        self.pushes: tuple[Any, ...] = ()
        self.arrivals: dict[str, datetime] = {}
        self.away = False

    def read(self, pool: str) -> Pushed | None:
        return None if self.away else Pushed(pushes=self.pushes, arrivals=self.arrivals)


class Fleet:
    """A pool with one node of 8 `sim` and one model `chat` whose replicas were measured to serve 10."""

    def __init__(self, *, units: int = 8, settings: Mapping[str, Any] | None = None, **model: Any) -> None:
        self.pool = make_pool("p", **(settings or {"down_window_seconds": 30}))
        make_node("n1", pool=self.pool, resources={"sim": units})
        self.model = make_model("chat", pool=self.pool, **{"created_at": START - timedelta(days=1), **model})
        self.profile = make_profile(self.model, "small", template="simulator")
        self.measurement = make_measurement(self.profile)
        self.fake = FakeFleet(now=START)
        self.fake.add_node("n1", "p", {"sim": units})
        self.loads = Loads(self.fake)
        self.answers = Answers()
        self.pushes = Pushes()
        self.deps = self.make_deps()

    def make_deps(self, **overrides: Any) -> Deps:
        """As another worker would have them: its own views, its own name."""
        values: dict[str, Any] = {
            "driver": self.fake,
            "loads": self.loads,
            "answers": self.answers,
            "pushes": self.pushes,
            "policies": LastGood(load_policies),
            "measurements": LastGood[Measurements](load_measurements),
            "rates": TokenRates(),
            "holder": "worker-1",
            "installation": INSTALLATION,
        }
        return Deps(**{**values, **overrides})

    @property
    def lease(self) -> Lease:
        return pools(name="p")[0]

    def a_pass(self, deps: Deps | None = None) -> PassReport:
        return run_pass(deps or self.deps, self.lease, self.fake.now())

    def passes(self, count: int, seconds: int = 15) -> list[PassReport]:
        """`count` passes, each after `seconds`."""
        reports = []
        for _ in range(count):
            self.fake.advance(seconds)
            reports.append(self.a_pass())
        return reports

    def share(self, requests: int) -> None:
        """Spread that many requests over the replicas that are ready."""
        ready = self.names("ready")
        self.fake.in_flight.clear()
        for number, name in enumerate(ready):
            self.fake.in_flight[name] = requests // len(ready) + (1 if number < requests % len(ready) else 0)

    def names(self, *states: str) -> list[str]:
        """Replicas that run on the hosts, by state."""
        reports = self.fake.observe("p") or ()
        return sorted(r.name for report in reports for r in report.replicas if r.state in states)


def deps_without_redis() -> Deps:
    """A process's own, where Redis does not answer; its views read in the test's own thread and connection."""
    nowhere = redis.Redis(host="127.0.0.1", port=1, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0))
    own = {"policies": LastGood(load_policies), "measurements": LastGood[Measurements](load_measurements)}
    return make_deps(nowhere, **own)
