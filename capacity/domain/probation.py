"""The watch over a removal: for one down window, do the model's requests still meet its SLO without that replica?

Watched are drains of ready replicas that leave others to carry their load by choice: `rest_under_threshold` and `evacuate`.
What a maximum, a limit, an owner or a failed start takes away is no choice, and after `idle` nobody is left to be watched.
A sweep's own requests on a replica under test are nobody's: what such a one has counted up to its sweep's end says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from capacity.domain.latency import Histogram, Latency, since, within
from capacity.domain.phrases import number

WATCHED: Final = frozenset({"rest_under_threshold", "evacuate"})
REST: Final = timedelta(hours=24)
LEAST_OBSERVED: Final = 20

Result = Literal["", "held", "failed", "unknown"]
RESULTS: Final[Mapping[str, Result]] = {"": "", "held": "held", "failed": "failed", "unknown": "unknown"}
Histograms = Mapping[Latency, Histogram]
NAMES: Final[Mapping[Latency, str]] = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "end to end"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`percentile` per cent of the requests are to stay within `bound_ms`."""

    latency: Latency
    percentile: int
    bound_ms: int

    @property
    def least_observed(self) -> int:
        """With fewer than this one single slow request could miss it."""
        return max(LEAST_OBSERVED, -(-100 // (100 - self.percentile)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attained:
    """How many of `count` observations were within the target's bound."""

    target: Target
    within: float
    count: int

    @property
    def is_enough(self) -> bool:
        return self.count >= self.target.least_observed

    @property
    def is_missed(self) -> bool:
        return self.is_enough and 100 * self.within < self.target.percentile * self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A removal of `replica` at `since`, watched until `until`. `floor`: how many lived before it. `base`: the latencies then of
    each replica that was there, empty where they were not known. `based`: when a base was taken anew, for those that a sweep has
    loaded since. `result` is empty while it is watched: then `held`, `failed`, or `unknown` where nobody can say, at
    `decided_at`."""

    replica: str
    since: datetime
    until: datetime
    floor: int
    base: Mapping[str, Histograms]
    based: Mapping[str, datetime] = field(default_factory=dict)
    attained: tuple[Attained, ...] = ()
    result: Result = ""
    decided_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        return not self.result


def renewed(new: Watch, old: Watch | None) -> Watch:
    """A removal during the watch of another: both are watched as one, from the first on."""
    if old is None or not old.is_open:
        return new
    return replace(new, since=old.since, floor=max(new.floor, old.floor), base={**new.base, **old.base}, based=old.based)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a replica has counted since its start, read `at`."""

    at: datetime
    histograms: Histograms


def served(
    watch: Watch, readings: Mapping[str, Reading], swept: Mapping[str, datetime | None]
) -> tuple[Watch, dict[str, Histograms]]:
    """The watch with new bases where sweeps are over, and of what was read that which users' requests alone have made.

    `swept`: replica → when its last sweep since the removal ended, None while it lasts. Such a one counts nothing until it is
    read after that end, and then from that reading on."""
    base, based, found = dict(watch.base), dict(watch.based), {}
    for name, reading in readings.items():
        ended = swept.get(name, watch.since)
        if ended is None:
            continue
        if based.get(name, watch.since) < ended:
            if reading.at <= ended:
                continue
            base[name], based[name] = reading.histograms, reading.at
        found[name] = reading.histograms
    return replace(watch, base=base, based=based), found


def judged(watch: Watch, targets: Sequence[Target], latencies: Mapping[str, Histograms] | None, now: datetime) -> Watch:
    """The watch after another look. `latencies` None: they could not be read, and what was seen before stands."""
    if not watch.is_open:
        return watch
    seen = watch.attained if latencies is None else tuple(_attained(target, watch.base, latencies) for target in targets)
    looked = replace(watch, attained=seen)
    if any(found.is_missed for found in seen):
        return replace(looked, result="failed", decided_at=now)
    if now < watch.until:
        return looked
    return replace(looked, result="held" if any(found.is_enough for found in seen) else "unknown", decided_at=now)


def _attained(target: Target, base: Mapping[str, Histograms], latencies: Mapping[str, Histograms]) -> Attained:
    total, quick = 0, 0.0
    for name, found in latencies.items():
        came = _since_then(base.get(name), found, target.latency)
        if came is not None:
            total += came.count
            quick += within(came, target.bound_ms / 1000)
    return Attained(target=target, within=quick, count=total)


def _since_then(base: Histograms | None, found: Histograms, latency: Latency) -> Histogram | None:
    """All that a replica observed that came later; of one that was there nothing where nobody knows what it had seen by then."""
    after = found.get(latency)
    if after is None or base is None:
        return after
    before = base.get(latency)
    return None if before is None else since(before, after)


def sentence(watch: Watch) -> str:
    """What became of it, with the numbers."""
    removal = f"The removal of {watch.replica} on {watch.since:%d %b at %H:%M}"
    if watch.is_open:
        return f"{removal} is watched until {watch.until:%H:%M} UTC: {_numbers(watch.attained)}."
    if watch.result == "unknown":
        return f"{removal} was watched without a verdict: {_numbers(watch.attained)}."
    verb = "was taken back" if watch.result == "failed" else "held"
    return f"{removal} {verb} at {watch.decided_at:%H:%M} UTC: {_numbers(watch.attained)}."


def _numbers(attained: Sequence[Attained]) -> str:
    if not attained:
        return "the model has no SLO, or its engines' latencies were not read"
    if not any(found.count for found in attained):
        return "its engines have reported no latencies since"
    return ", ".join(_of_target(found) for found in attained if found.count)


def _of_target(found: Attained) -> str:
    target = found.target
    few = "" if found.is_enough else f", too few to judge (at least {target.least_observed})"
    bound = f"{target.bound_ms} ms {NAMES[target.latency]}, target {target.percentile} %"
    return f"{_rounded(found):g} % of {number(found.count, 'observation')} within {bound}{few}"


def summary(watch: Watch) -> dict[str, Any]:
    """As people and programs read it. `share` null: nothing was observed."""
    return {
        "replica": watch.replica,
        "since": watch.since,
        "until": watch.until,
        "result": watch.result or "watched",
        "decided_at": watch.decided_at,
        "attained": [
            {
                "latency": found.target.latency,
                "bound_ms": found.target.bound_ms,
                "target_percent": found.target.percentile,
                "percent": _rounded(found) if found.count else None,
                "observations": found.count,
            }
            for found in watch.attained
        ],
        "sentence": sentence(watch),
    }


def _rounded(found: Attained) -> float:
    """Per cent to one digit, rounded down: what missed its target must not read as if it had met it."""
    return int(1000 * found.within / found.count) / 10


def document(watch: Watch) -> dict[str, Any]:
    """As it is stored."""
    return {
        "replica": watch.replica,
        "since": watch.since.isoformat(),
        "until": watch.until.isoformat(),
        "floor": watch.floor,
        "base": {
            name: {latency: [list(row.bounds), list(row.counts), row.count] for latency, row in rows.items()}
            for name, rows in watch.base.items()
        }
        if watch.is_open
        else {},
        "based": {name: at.isoformat() for name, at in watch.based.items()} if watch.is_open else {},
        "attained": [
            [found.target.latency, found.target.percentile, found.target.bound_ms, found.within, found.count]
            for found in watch.attained
        ],
        "result": watch.result,
        "decided_at": watch.decided_at.isoformat() if watch.decided_at else None,
    }


def read(stored: Any) -> Watch | None:
    """A stored watch; None where there is none, or none that can be read."""
    try:
        return _read(stored)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _read(stored: Any) -> Watch:
    decided = stored["decided_at"]
    return Watch(
        replica=str(stored["replica"]),
        since=datetime.fromisoformat(stored["since"]),
        until=datetime.fromisoformat(stored["until"]),
        floor=int(stored["floor"]),
        base={
            name: {
                latency: Histogram(bounds=tuple(bounds), counts=tuple(counts), count=count)
                for latency, (bounds, counts, count) in rows.items()
            }
            for name, rows in stored["base"].items()
        },
        based={name: datetime.fromisoformat(at) for name, at in stored.get("based", {}).items()},
        attained=tuple(
            Attained(target=Target(latency=latency, percentile=percentile, bound_ms=bound), within=quick, count=count)
            for latency, percentile, bound, quick, count in stored["attained"]
        ),
        result=RESULTS[stored["result"]],
        decided_at=datetime.fromisoformat(decided) if decided else None,
    )
