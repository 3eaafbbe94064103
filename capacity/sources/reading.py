"""What an engine's answer says (pure): read leniently, unknown where in doubt, never an exception.

Numbers are added up over everything that one endpoint exports: ranks, processes, and models (the adapters of one engine use the
same slots, so the replica's load is the sum over `model_name`, whatever the replica's own model is called). Ranks that repeat the
requests of their group count once. The cache is never added up.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import pairwise

from capacity.ports import Counter, Histogram, Latency, Sample
from capacity.sources.exposition import Labels, Series, parse
from capacity.sources.names import COPY_LABELS, ENGINES, NOT_ENGINES, WANTED, EngineNames, Quantity, Term

MAX_REQUESTS = 10**12
MAX_TOKENS = 2**53  # counters are floats on the wire: above this they are no longer exact
BUCKET_LABELS = COPY_LABELS | {"le"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReading:
    """What an answer said. None is unknown, never 0; `in_flight` = running + waiting, known only where both are.

    `kv_usage_mean`, `kv_usage_max`: share of the KV cache in use over the engine's ranks, 0 to 1. `latencies`: those that the
    engine counts, since its start."""

    engine: str | None
    in_flight: int | None = None
    running: int | None = None
    waiting: int | None = None
    output_tokens_total: int | None = None
    prompt_tokens_total: int | None = None
    prefix_queries_total: int | None = None
    prefix_hits_total: int | None = None
    kv_usage_mean: float | None = None
    kv_usage_max: float | None = None
    latencies: Mapping[Latency, Histogram] = field(default_factory=dict)

    def sample(self, at: datetime) -> Sample:
        """The part that passes work with."""
        return Sample(
            in_flight=self.in_flight,
            sampled_at=at,
            output_tokens_total=self.output_tokens_total,
            latencies=self.latencies,
            counters=self._counters(),
        )

    def _counters(self) -> dict[Counter, int]:
        found: dict[Counter, int | None] = {
            "input_tokens": self.prompt_tokens_total,
            "output_tokens": self.output_tokens_total,
            "prefix_queries": self.prefix_queries_total,
            "prefix_hits": self.prefix_hits_total,
        }
        return {name: value for name, value in found.items() if value is not None}


def read_engine(text: str) -> EngineReading:
    """Read one engine's answer; `engine` None where no known engine's metrics are in it. Never raises."""
    return read_series(parse(text, WANTED))


def read_series(series: Series) -> EngineReading:
    """The same from metrics that are parsed, names with underscores."""
    names = engine_names(series)
    if names is None:
        return EngineReading(engine=None)
    running = _count(names.running, series)
    waiting = _count(names.waiting, series)
    kv = _kv_usage(names, series)
    return EngineReading(
        engine=names.engine,
        in_flight=_sum(running, waiting),
        running=running,
        waiting=waiting,
        output_tokens_total=_count(names.output_tokens, series, MAX_TOKENS),
        prompt_tokens_total=_count(names.prompt_tokens, series, MAX_TOKENS),
        prefix_queries_total=_count(names.prefix_queries, series, MAX_TOKENS),
        prefix_hits_total=_count(names.prefix_hits, series, MAX_TOKENS),
        kv_usage_mean=sum(kv) / len(kv) if kv else None,
        kv_usage_max=max(kv) if kv else None,
        latencies=_latencies(names, series),
    )


def read_models(series: Series) -> dict[str, int | None]:
    """Model as the engine calls it → its requests in flight; empty where the engine tells no models apart."""
    names = engine_names(series)
    if names is None:
        return {}
    terms = [term for quantity in (names.running, names.waiting) for terms in quantity for term in terms]
    labels = {pair for term in terms for row in series.get(term.name, ()) for pair in row if pair[0] == names.model_label}
    return {label[1]: _in_flight_of(label, names, series) for label in sorted(labels)}


def why_no_engine(text: str) -> str:
    """Why an answer without a known engine's metrics is none, in a sentence."""
    start = text.lstrip()[:1]
    if start == "<":
        return "Answered HTML instead of metrics."
    if start in ("[", "{"):
        return "Answered JSON instead of metrics; TensorRT-LLM has them at /prometheus/metrics."
    known = (sentence for prefix, sentence in NOT_ENGINES if text.startswith(prefix) or f"\n{prefix}" in text)
    return next(known, "Answered without a known engine's metrics.")


def engine_names(series: Series) -> EngineNames | None:
    """The row of the engine that answered."""
    return next((names for names in ENGINES if _answers(names, series)), None)


def _answers(names: EngineNames, series: Series) -> bool:
    quantities = (names.running, names.waiting)
    if any(term.name in series for quantity in quantities for terms in quantity for term in terms):
        return True
    return any(f"{name}_bucket" in series for alternatives in names.latencies.values() for name in alternatives)


def _sum(running: int | None, waiting: int | None) -> int | None:
    return None if running is None or waiting is None else running + waiting


def _in_flight_of(label: tuple[str, str], names: EngineNames, series: Series) -> int | None:
    own = {name: {labels: value for labels, value in rows.items() if label in labels} for name, rows in series.items()}
    return _sum(_part(names.running, own), _part(names.waiting, own))


def _part(quantity: Quantity, series: Series) -> int | None:
    """A model without a series of its own has none waiting, or none running: engines make them as requests come."""
    return 0 if _present(quantity, series) is None else _count(quantity, series)


def _count(quantity: Quantity, series: Series, most: int = MAX_REQUESTS) -> int | None:
    """The first alternative that is there, added up; None where none is, or a part of it is no whole number from 0 on."""
    terms = _present(quantity, series)
    if terms is None:
        return None
    total = 0
    for term in terms:
        for value in _values(term, series):
            if not _is_whole(value, most):
                return None
            total += term.sign * int(value)
    return min(max(total, 0), most)


def _is_whole(value: float, most: int) -> bool:
    return math.isfinite(value) and 0 <= value <= most and value == int(value)


def _kv_usage(names: EngineNames, series: Series) -> list[float]:
    used, total = _present(names.kv_usage, series), _present(names.kv_total, series)
    if used is None:
        return []
    shares = _values(used[0], series)
    if total is not None:
        whole = sum(_values(total[0], series))
        shares = [sum(shares) / whole] if whole else []
    return [share for share in shares if math.isfinite(share) and share >= 0]


def _present(quantity: Quantity, series: Series) -> tuple[Term, ...] | None:
    for terms in quantity:
        if all(term.optional or _values(term, series) for term in terms):
            return terms
    return None


def _values(term: Term, series: Series) -> list[float]:
    """The term's values, one a group of ranks that repeat each other (the largest; NaN stays)."""
    groups: dict[Labels, list[float]] = {}
    for labels, value in series.get(term.name, {}).items():
        if _carries(labels, term.labels):
            groups.setdefault(_without(labels, COPY_LABELS), []).append(value)
    return [_largest(values) for values in groups.values()]


def _carries(labels: Labels, wanted: Mapping[str, str]) -> bool:
    return all(pair in labels for pair in wanted.items())


def _without(labels: Labels, names: Collection[str]) -> Labels:
    return tuple(pair for pair in labels if pair[0] not in names)


def _largest(values: Iterable[float]) -> float:
    found = [*values]
    return math.nan if any(math.isnan(value) for value in found) else max(found)


def _latencies(names: EngineNames, series: Series) -> dict[Latency, Histogram]:
    found: dict[Latency, Histogram] = {}
    for latency, alternatives in names.latencies.items():
        rows = next((series[f"{name}_bucket"] for name in alternatives if f"{name}_bucket" in series), None)
        histogram = None if rows is None else _histogram(rows)
        if histogram is not None:
            found[latency] = histogram
    return found


def _histogram(rows: Mapping[Labels, float]) -> Histogram | None:
    """Added up over ranks and models, copies once; None where a number is none, counts fall, or buckets differ."""
    groups: dict[Labels, dict[float, list[float]]] = {}
    for labels, value in rows.items():
        group, bound = _bucket(labels)
        if math.isnan(bound) or not _is_whole(value, MAX_TOKENS):
            return None
        groups.setdefault(group, {}).setdefault(bound, []).append(value)
    bounds = sorted(next(iter(groups.values())))
    if bounds[-1] != math.inf or any(sorted(group) != bounds for group in groups.values()):
        return None
    counts = [int(sum(max(group[bound]) for group in groups.values())) for bound in bounds]
    if any(before > after for before, after in pairwise(counts)):
        return None
    return Histogram(bounds=tuple(bounds[:-1]), counts=tuple(counts[:-1]), count=counts[-1])


@lru_cache(maxsize=4096)  # the same in every reading
def _bucket(labels: Labels) -> tuple[Labels, float]:
    """The series that a bucket belongs to, and its upper bound; NaN where it has none."""
    bound = next((text for name, text in labels if name == "le"), "")
    try:
        return _without(labels, BUCKET_LABELS), float(bound)
    except ValueError:
        return (), math.nan
