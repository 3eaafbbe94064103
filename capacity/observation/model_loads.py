"""What gateways say of models: held requests and arrivals under any of their names, and where gateways and engines disagree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from ..domain.disagree import Disagreement, blocks, sentence
from ..domain.phrases import names
from ..domain.types import UNKNOWN, Unknown
from ..ports import Sample
from ..rows import ModelRow, Problem, Rows
from ..sources.gateway import Combined, Push, is_live
from .observe import Observed


def held_requests(row: ModelRow, loads: Combined | None) -> int | None:
    """Held for the model under any of its names; unknown where one of them is, or where the pushes could not be read."""
    if loads is None:
        return None
    held = [loads.held[name] for name in (row.name, *row.served_names) if name in loads.held]
    return None if None in held else sum(count for count in held if count is not None)


def last_arrival(row: ModelRow, loads: Combined | None) -> datetime | None:
    if loads is None:
        return None
    return max((loads.arrivals[name] for name in (row.name, *row.served_names) if name in loads.arrivals), default=None)


def in_service(samples: Mapping[str, Sample], rows: Rows) -> dict[str, Sample]:
    """Without those under test: their tokens are a sweep's, and what they count goes on from there."""
    tested = {name for name, row in rows.replicas.items() if row.under_test}
    return {name: sample for name, sample in samples.items() if name not in tested}


def peak(row: ModelRow) -> int | Unknown | None:
    return UNKNOWN if row.peak_unknown else row.demand_peak


def unknown_pushes(pushes: Iterable[Push], pool: str, stale_after_seconds: int, now: datetime) -> Iterator[Problem]:
    """Gateways that push, now, for what the pool has never had: they look at another pool, or mean another one's replicas."""
    for push in pushes:
        if push.unknown and is_live(push, now, stale_after_seconds):
            detail = f"pushes for {names(push.unknown)}, which {pool} has never had; that counts for nobody"
            yield {"code": "unknown_push", "subject": f"gateway:{push.source}", "detail": detail}


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreements:
    """Since when each model has a replica on which gateways and engine disagree (absent: all agree), those of whose removals it
    blocks, and what is told."""

    since: Mapping[str, datetime] = field(default_factory=dict)
    blocked: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()


def disagreements(
    rows: Rows, observed: Observed | None, loads: Combined | None, window_seconds: int, now: datetime
) -> Disagreements:
    """`window_seconds`: the pool's, for models without their own. Where one of both cannot be read, what was known stands."""
    if observed is None or loads is None:
        return Disagreements(since={name: row.disagree_since for name, row in rows.models.items() if row.disagree_since})
    found = by_model(rows, observed, loads)
    since = {name: rows.models[name].disagree_since or now for name in found}
    own = {name: rows.models[name].down_window_seconds for name in found}
    windows = {name: window_seconds if seconds is None else seconds for name, seconds in own.items()}
    blocked = frozenset(name for name in found if blocks(since[name], windows[name], now))
    # once is two readings of two instants: it is told when the next pass finds it again
    told = [(name, some) for name, some in found.items() if since[name] < now]
    problems = tuple(problem for name, some in told for problem in told_of(name, some, is_blocking=name in blocked))
    return Disagreements(since=since, blocked=blocked, problems=problems)


def by_model(rows: Rows, observed: Observed, loads: Combined) -> Mapping[str, list[Disagreement]]:
    """Of replicas that are meant to stay and that gateways send to: a draining one's have left it at different times."""
    found: dict[str, list[Disagreement]] = defaultdict(list)
    for present in observed.present if loads.disagreements else ():
        one, row = loads.disagreements.get(present.name), rows.replicas.get(present.name)
        if row is not None and row.under_test:
            continue
        if one and present.model in rows.models and present.state != "draining" and not present.is_silent:
            found[present.model].append(one)
    return found


def told_of(model: str, found: list[Disagreement], *, is_blocking: bool) -> Iterator[Problem]:
    subject = f"replica:{found[0].replica}" if len(found) == 1 else f"model:{model}"
    yield {"code": "disagree", "subject": subject, "detail": sentence(found, is_blocking=is_blocking)}


def without_peaks(rows: Rows, models: frozenset[str]) -> Rows:
    """Their demand over the window is not known: nothing of them is taken back."""
    if not models:
        return rows
    changed = {name: replace(rows.models[name], peak_unknown=True) for name in models}
    return replace(rows, models={**rows.models, **changed})
