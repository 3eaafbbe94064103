"""What gateways push: their requests in flight a replica, the requests that they hold, the last arrivals.

The rules of `combine`, all of them in favour of keeping a replica where there is doubt:

- A source is *live* up to and including `stale_after_seconds` after its push, *silent* from then until `forget_after_seconds`,
  and forgotten afterwards. A gateway that stops for good says so with a push that names nothing: it is then missed at once,
  and holds nothing up.
- A replica that only live sources report has the sum over them, as old as the oldest of them; where the engine's own fresh
  count is larger, that one.
- A replica that a silent source reported has a sum with a part missing: the engine's own count stands, or the live sum where
  that is larger, and without an own count of the engine the load is unknown.
- Held requests are the sum over live sources, unknown where a silent one reported the model, and absent (0) where no source that
  is remembered did.
- Where all sources of a replica are live and the engine counts otherwise by more than 2 and more than a quarter, both disagree.
- A last arrival is the latest that any source ever reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from capacity.domain.disagree import Disagreement, differ
from capacity.ports import Sample

FORGET_AFTER_SECONDS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPush:
    """What one source says of a model. `held` None: it does not say."""

    held: int | None = None
    last_arrival_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """One source's newest push; `at` is the server's time of its receipt. `replicas`: name → requests in flight; `account`: who
    pushed it; `unknown`: names in it that the pool has never had, the first of them."""

    source: str
    at: datetime
    replicas: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[str, ModelPush] = field(default_factory=dict)
    account: str = ""
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """`loads`: replica → sample, in_flight None where it is unknown on purpose; a replica of which nothing is known is absent.
    `held`: model → requests, None unknown, absent for 0. `arrivals`: model → last arrival. `disagreements`: replica → both
    counts, where all of its gateways are heard of and its engine counts otherwise."""

    loads: Mapping[str, Sample]
    held: Mapping[str, int | None]
    arrivals: Mapping[str, datetime]
    disagreements: Mapping[str, Disagreement] = field(default_factory=dict)


def is_live(push: Push, now: datetime, stale_after_seconds: float) -> bool:
    return _age(push.at, now) <= stale_after_seconds


def combine(
    pushes: Sequence[Push],
    engine_samples: Mapping[str, Sample],
    now: datetime,
    stale_after_seconds: float,
    *,
    kept_arrivals: Mapping[str, datetime] | None = None,
    forget_after_seconds: float = FORGET_AFTER_SECONDS,
) -> Combined:
    """Put the sources and the engines' own counts together. `kept_arrivals`: what earlier pushes said (PushStore.read)."""
    live = [push for push in pushes if is_live(push, now, stale_after_seconds)]
    silent = [push for push in pushes if stale_after_seconds < _age(push.at, now) <= forget_after_seconds]
    sums, missing = _sums(live), {replica for push in silent for replica in push.replicas}
    return Combined(
        loads=_loads(sums, missing, silent, engine_samples, now, stale_after_seconds),
        held=_held(live, silent),
        arrivals=_arrivals(pushes, kept_arrivals or {}),
        disagreements=_disagreements(sums, missing, engine_samples, now, stale_after_seconds),
    )


def _loads(
    sums: Mapping[str, Sample],
    missing: Set[str],
    silent: Sequence[Push],
    engines: Mapping[str, Sample],
    now: datetime,
    stale_after_seconds: float,
) -> dict[str, Sample]:
    loads = dict(engines)
    for replica, pushed in sums.items():
        loads[replica] = _larger(pushed, engines.get(replica), incomplete=replica in missing, now=now, stale=stale_after_seconds)
    for push in sorted(silent, key=lambda push: push.at, reverse=True):  # unknown since it was last heard of
        for replica in push.replicas.keys() - loads.keys():
            loads[replica] = Sample(in_flight=None, sampled_at=push.at)
    return loads


def _sums(live: Iterable[Push]) -> dict[str, Sample]:
    sums: dict[str, Sample] = {}
    for push in live:
        for replica, in_flight in push.replicas.items():
            before = sums.get(replica)
            total = in_flight + ((before.in_flight or 0) if before else 0)
            sums[replica] = Sample(in_flight=total, sampled_at=min(push.at, before.sampled_at) if before else push.at)
    return sums


def _larger(pushed: Sample, engine: Sample | None, *, incomplete: bool, now: datetime, stale: float) -> Sample:
    own = _own(engine, now, stale)
    if own is None and incomplete:
        return Sample(in_flight=None, sampled_at=pushed.sampled_at, output_tokens_total=_tokens(engine))
    if own is not None and engine is not None and own >= (pushed.in_flight or 0):
        return engine
    return Sample(in_flight=pushed.in_flight, sampled_at=pushed.sampled_at, output_tokens_total=_tokens(engine))


def _disagreements(
    sums: Mapping[str, Sample], missing: Set[str], engines: Mapping[str, Sample], now: datetime, stale: float
) -> dict[str, Disagreement]:
    found = {}
    for replica, pushed in sums.items():
        own = _own(engines.get(replica), now, stale)
        gateways = pushed.in_flight or 0
        if own is not None and replica not in missing and differ(gateways, own):
            found[replica] = Disagreement(replica=replica, gateways=gateways, engine=own)
    return found


def _own(engine: Sample | None, now: datetime, stale: float) -> int | None:
    """The engine's fresh count."""
    return engine.in_flight if engine is not None and _age(engine.sampled_at, now) <= stale else None


def _tokens(engine: Sample | None) -> int | None:
    return None if engine is None else engine.output_tokens_total


def _held(live: Iterable[Push], silent: Iterable[Push]) -> dict[str, int | None]:
    held: dict[str, int | None] = {}
    for push in live:
        for model, said in push.models.items():
            if said.held is not None:
                held[model] = said.held + (held.get(model) or 0)
    for push in silent:
        held.update({model: None for model, said in push.models.items() if said.held is not None})
    return held


def _arrivals(pushes: Iterable[Push], kept: Mapping[str, datetime]) -> dict[str, datetime]:
    arrivals = dict(kept)
    for push in pushes:
        for model, said in push.models.items():
            if said.last_arrival_at is not None:
                arrivals[model] = max(said.last_arrival_at, arrivals.get(model, said.last_arrival_at))
    return arrivals


def _age(at: datetime, now: datetime) -> float:
    """Seconds; a push from the future (a clock set back) counts as just now."""
    return max(now - at, timedelta(0)).total_seconds()
