"""What llmgw says to Prometheus: the newest pass of each pool, in a fixed number of queries, read at each scrape."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Q, Sum
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from .briefings.brake_state import is_pulled
from .domain.reasons import BRAKES
from .last_good_views import load_measurements
from .models import Action, BenchRun, Decision, LanguageModel, Lease, Node, Pass, Replica, Sample
from .observation.hearing import HEARD, heard

MISSED_PASSES = 3
# metric → (what it says, the attribute of Sample)
OF_SAMPLE = {
    "llmgw_model_demand_low": ("Requests in flight and held that are known.", "demand_low"),
    "llmgw_model_demand_high": ("Requests in flight and held, unknown ones counted at their capacity.", "demand_high"),
    "llmgw_model_capacity_ready": ("Requests in flight that the ready replicas were measured to serve.", "capacity_ready"),
    "llmgw_model_capacity_starting": (
        "Requests in flight that the starting replicas were measured to serve.",
        "capacity_starting",
    ),
    "llmgw_model_tokens_per_second": ("Output tokens a second.", "tokens_per_second"),
}


Ignored = Callable[[str], Mapping[str, int]]


class FleetCollector(Collector):
    """One scrape's view. A pool without a complete pass in the last three intervals has no model series: absent, never 0."""

    def __init__(
        self, now: datetime, pass_seconds: int, ignored: Ignored = lambda pool: {}, unheard: Sequence[str] | None = None
    ) -> None:
        """`ignored`: pool → source → names of its pushes that the pool did not have. `unheard`: pools that hosts report for and
        that there are not; None: unknown."""
        self._now, self._ignored, self._unheard = now, ignored, unheard
        self._pass_seconds = pass_seconds
        self._late = timedelta(seconds=pass_seconds * MISSED_PASSES)

    def collect(self) -> Iterator[Metric]:
        leases = list(Lease.objects.select_related("pool__brake").order_by("pool__name"))
        fresh = [lease for lease in leases if lease.last_pass_at and self._now - lease.last_pass_at <= self._late]
        yield from passes(leases, self._pass_seconds)
        yield from brakes(leases, self._now)
        yield from samples(fresh)
        yield from decisions(fresh)
        yield from rests(fresh, self._now)
        yield from doubts(fresh)
        yield from pushes(leases, self._ignored)
        yield from strangers(self._unheard)
        yield from fleet(self._now)
        yield from views(fresh, self._now)


def passes(leases: list[Lease], pass_seconds: int) -> Iterator[Metric]:
    interval = GaugeMetricFamily("llmgw_pass_interval_seconds", "Seconds from one pass to the next, as it is set.")
    interval.add_metric([], pass_seconds)
    yield interval
    at = GaugeMetricFamily("llmgw_last_pass_timestamp_seconds", "When the last complete pass of the pool was.", labels=["pool"])
    needed = GaugeMetricFamily(
        "llmgw_takeover_needed", "1 while the pool is only advised until somebody takes it over.", labels=["pool"]
    )
    generation = GaugeMetricFamily("llmgw_lease_generation", "Generation of the pool's lease.", labels=["pool"])
    for lease in leases:
        generation.add_metric([lease.pool.name], lease.generation)
        needed.add_metric([lease.pool.name], 1 if lease.take_over_needed else 0)
        if lease.last_pass_at:
            at.add_metric([lease.pool.name], lease.last_pass_at.timestamp())
    yield at
    yield generation
    yield needed


def pushes(leases: list[Lease], ignored: Ignored) -> Iterator[Metric]:
    names = CounterMetricFamily(
        "llmgw_push_ignored_names_total", "Names of gateways' pushes that the pool did not have.", labels=["pool", "source"]
    )
    for lease in leases:
        for source, count in sorted(ignored(lease.pool.name).items()):
            names.add_metric([lease.pool.name, source], count)
    yield names


def strangers(unheard: Sequence[str] | None) -> Iterator[Metric]:
    """Without their names, which anybody with Redis' password chooses."""
    found = GaugeMetricFamily("llmgw_unheard_pools", "Pools that hosts report for and of which no passes are made.")
    if unheard is not None:
        found.add_metric([], len(unheard))
    yield found


def brakes(leases: list[Lease], now: datetime) -> Iterator[Metric]:
    """A series for each rule, so that an alert sees it fall to 0."""
    on = GaugeMetricFamily("llmgw_brake_on", "1 while a person withholds everything.", labels=["pool"])
    withheld = GaugeMetricFamily("llmgw_brake_withheld", "Actions that the brake withholds now.", labels=["pool", "rule"])
    for lease in leases:
        brake = lease.pool.brake
        on.add_metric([lease.pool.name], int(is_pulled(brake, now)))
        rules = Counter(row["rule"] for row in brake.withheld)
        for rule in BRAKES:
            withheld.add_metric([lease.pool.name, rule], rules[rule])
    yield on
    yield withheld


def samples(leases: list[Lease]) -> Iterator[Metric]:
    rows = newest_samples(leases)
    for name, (help_text, attribute) in OF_SAMPLE.items():
        family = GaugeMetricFamily(name, help_text, labels=["pool", "model"])
        for pool, model, sample in rows:
            value = getattr(sample, attribute)
            if value is not None:
                family.add_metric([pool, model], value)
        yield family
    ratio = GaugeMetricFamily(
        "llmgw_model_load_ratio", "Demand over measured capacity; absent without capacity.", labels=["pool", "model"]
    )
    desired = GaugeMetricFamily("llmgw_desired_replicas", "Replicas that the model should have.", labels=["pool", "model"])
    missing = GaugeMetricFamily(
        "llmgw_model_missing_replicas", "Replicas wanted that neither run nor start.", labels=["pool", "model"]
    )
    for pool, model, sample in rows:
        desired.add_metric([pool, model], sample.wanted)
        missing.add_metric([pool, model], max(0, sample.wanted - sample.ready - sample.unready - sample.starting))
        if sample.capacity_ready:
            ratio.add_metric([pool, model], sample.demand_low / sample.capacity_ready)
    yield ratio
    yield desired
    yield missing


def newest_samples(leases: list[Lease]) -> list[tuple[str, str, Sample]]:
    found: list[tuple[str, str, Sample]] = []
    for lease in leases:
        rows = Sample.objects.filter(model__pool=lease.pool, at=lease.last_pass_at).select_related("model").defer("replicas")
        found.extend((lease.pool.name, row.model.name, row) for row in rows.order_by("model__name"))
    return found


def decisions(leases: list[Lease]) -> Iterator[Metric]:
    last = Decision.objects.filter(pool__in=[lease.pool_id for lease in leases], pk__in=_last_decisions())
    by_reason = GaugeMetricFamily(
        "llmgw_decision",
        "1 for the outcome and reason of the model's last decision.",
        labels=["pool", "model", "outcome", "reason"],
    )
    bounds = {
        "adds_above": GaugeMetricFamily("llmgw_model_adds_above", "Demand above this adds a replica.", labels=["pool", "model"]),
        "removes_below": GaugeMetricFamily(
            "llmgw_model_removes_below", "Demand below this removes one.", labels=["pool", "model"]
        ),
    }
    for pool, model, outcome, reason, numbers in last.order_by("pool__name", "model__name").values_list(
        "pool__name", "model__name", "outcome", "reason", "numbers"
    ):
        by_reason.add_metric([pool, model, outcome, reason], 1)
        for key, family in bounds.items():
            if numbers.get(key) is not None:
                family.add_metric([pool, model], numbers[key])
    yield by_reason
    yield from bounds.values()


def _last_decisions() -> Any:
    return LanguageModel.objects.filter(last_decision__isnull=False).values("last_decision")


def rests(leases: list[Lease], now: datetime) -> Iterator[Metric]:
    rest = GaugeMetricFamily(
        "llmgw_removals_rest",
        "1 while removals of the model rest because one made it miss its SLO, else 0.",
        labels=["pool", "model"],
    )
    models = LanguageModel.objects.filter(pool__in=[lease.pool_id for lease in leases]).order_by("pool__name", "name")
    for pool, model, until in models.values_list("pool__name", "name", "removals_rest_until"):
        rest.add_metric([pool, model], 1 if until is not None and until > now else 0)
    yield rest


def doubts(leases: list[Lease]) -> Iterator[Metric]:
    """A series for each kind, so that an alert sees it fall to 0."""
    family = GaugeMetricFamily(
        "llmgw_measurements_doubted", "Measurements in use that the self-check speaks against.", labels=["pool", "kind"]
    )
    found = Counter((pool, code) for pool, _, code, _ in load_measurements(None).doubted)
    for lease in leases:
        for kind in ("optimistic", "off_shape"):
            family.add_metric([lease.pool.name, kind], found[lease.pool.name, kind])
    yield family


def fleet(now: datetime) -> Iterator[Metric]:
    replicas = GaugeMetricFamily("llmgw_replicas", "Replicas by state.", labels=["pool", "model", "profile", "state"])
    testing = GaugeMetricFamily(
        "llmgw_replicas_under_test", "Replicas that a sweep has to itself.", labels=["pool", "model", "profile"]
    )
    tested: dict[tuple[str, str, str], int] = defaultdict(int)
    is_tested = Q(pk__in=BenchRun.objects.holding(now).order_by().values("replica"))
    present = Replica.objects.filter(gone_at__isnull=True).order_by()
    held: dict[tuple[str, str], int] = defaultdict(int)
    for pool, model, profile, resource, state, count, units, tests in present.values_list(
        "pool__name", "model__name", "profile__name", "profile__resource", "state"
    ).annotate(count=Count("id"), held=Sum(F("units") * F("profile__hosts")), tests=Count("id", filter=is_tested)):
        replicas.add_metric([pool, model, profile, state], count)
        held[pool, resource] += units
        tested[pool, model, profile] += tests
    yield replicas
    for labels, count in sorted(tested.items()):
        testing.add_metric(labels, count)
    yield testing
    units_family = GaugeMetricFamily(
        "llmgw_pool_units", "Units by class: offered, held, foreign.", labels=["pool", "resource", "kind"]
    )
    offered: dict[tuple[str, str, str], int] = defaultdict(int)
    nodes = list(Node.objects.select_related("pool__settings", "pool__lease").order_by())
    for node in nodes:
        pool, resources, foreign = node.pool.name, node.resources, node.foreign
        for kind, units_by_class in (("offered", resources), ("foreign", foreign)):
            for resource, units in units_by_class.items():
                offered[pool, resource, kind] += units
    for (pool, resource, kind), count in sorted(offered.items()):
        units_family.add_metric([pool, resource, kind], count)
    for (pool, resource), count in sorted(held.items()):
        units_family.add_metric([pool, resource, "held"], count)
    yield units_family
    yield hosts(nodes, now)
    open_actions = GaugeMetricFamily("llmgw_open_actions", "Actions that are not seen done yet.", labels=["pool", "op", "state"])
    unresolved = Action.objects.filter(state__in=[Action.State.PENDING, Action.State.SENT]).order_by()
    for pool, op, state, count in unresolved.values_list("pool__name", "op", "state").annotate(count=Count("id")):
        open_actions.add_metric([pool, op, state], count)
    yield open_actions


def hosts(nodes: list[Node], now: datetime) -> Metric:
    """All states of each pool that has nodes, so that a count that falls to 0 is seen."""
    family = GaugeMetricFamily("llmgw_nodes", "Nodes by what is heard of them.", labels=["pool", "state"])
    counts = {(node.pool.name, state): 0 for node in nodes for state in HEARD}
    for node in nodes:
        counts[node.pool.name, heard(node, now)] += 1
    for labels, count in sorted(counts.items()):
        family.add_metric(labels, count)
    return family


def views(leases: list[Lease], now: datetime) -> Iterator[Metric]:
    age = GaugeMetricFamily("llmgw_view_age_seconds", "Age of the last good answer of a view.", labels=["pool", "view"])
    failing = GaugeMetricFamily("llmgw_view_failing", "1 while the view's store does not answer.", labels=["pool", "view"])
    seconds = GaugeMetricFamily("llmgw_pass_seconds", "How long the last pass took.", labels=["pool"])
    for lease in leases:
        last = Pass.objects.filter(pool=lease.pool, at=lease.last_pass_at).first()
        if last is None:
            continue
        seconds.add_metric([lease.pool.name], last.seconds)
        for view, reading in sorted(last.views.items()):
            failing.add_metric([lease.pool.name, view], 1 if reading.get("error") else 0)
            if reading.get("read_at"):
                age.add_metric([lease.pool.name, view], (now - datetime.fromisoformat(reading["read_at"])).total_seconds())
    yield age
    yield failing
    yield seconds
