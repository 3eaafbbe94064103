"""What every generation of GuideLLM says of one benchmark, in whatever form, and the stage that it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from capacity.bench.formats import values
from capacity.domain.measurement.types import Setting, Skipped, Stage

NAME: Final = "GuideLLM"

LISTED: Final = ("min", "p001", "p1", "p5", "p10", "p25", "p75", "p90", "p95", "p99", "max")
"""What the eleven numbers in one CSV cell are; the early kind says so in its heading, the later one does not."""

_STEADY_INCOMPLETE: Final = 0.1
_KEPT_UP: Final = 0.95
_DRAWN: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One benchmark as it stands in the file: latencies in the file's units (`e2e` seconds, the others ms), of successes only."""

    where: str
    strategy: Mapping[str, Any]
    """`type_`, and `streams` or `rate` where it has one."""
    seconds: Any
    counts: Mapping[str, Any]
    """`successful`, `errored`, `incomplete` of the measured part."""
    in_flight: Any
    tokens_per_second: Any
    ttft: Mapping[str, Any]
    between_tokens: Mapping[str, Any]
    """`inter_token_latency_ms`: what others call TPOT. GuideLLM's own `time_per_output_token_ms` has the first token in it."""
    e2e: Mapping[str, Any]
    input_tokens: Any
    output_tokens: Any
    unresolved: bool = False
    """Its own search for the limit says that too few requests finished, or that it broke off."""


def rows(runs: Sequence[Run], setting: Setting) -> Iterable[values.Row]:
    """A row for each run, with lengths that are the same for all: those asked for, else the mean of what was measured."""
    lengths = {
        "input_tokens": setting.input_tokens or _mean([(run.input_tokens, run.counts) for run in runs]),
        "output_tokens": setting.output_tokens or _mean([(run.output_tokens, run.counts) for run in runs]),
    }
    whole = Setting(**{**_fields(setting), **lengths})
    return (_row(run, whole) for run in runs)


def _fields(setting: Setting) -> dict[str, Any]:
    return {name: getattr(setting, name) for name in Setting.__dataclass_fields__}


def _mean(found: Iterable[tuple[Any, Mapping[str, Any]]]) -> int | None:
    """The mean length over all runs, to two digits: lengths that were drawn differ a little from run to run."""
    known = [
        (length, weight)
        for value, counts in found
        if (length := values.positive(value)) is not None and (weight := values.count(counts.get("successful")))
    ]
    mean = values.rounded(values.ratio(sum(length * weight for length, weight in known), sum(weight for _, weight in known)))
    return None if mean is None else round(mean, _DRAWN - len(str(mean)))


def _row(run: Run, setting: Setting) -> values.Row:
    requests, errors = values.count(run.counts.get("successful")), values.count(run.counts.get("errored"))
    where = f"{run.where} ({shown(run.strategy)})"
    if run.strategy.get("type_") == "throughput":
        return Skipped(where=where, why="its load was unbounded, which is no level of concurrency.")
    if nothing := values.unfinished(where, requests, errors):
        return nothing
    stage = Stage(
        where=where,
        asked=_asked(run.strategy),
        mean_in_flight=values.positive(run.in_flight),
        requests=requests,
        errors=errors,
        incomplete=values.count(run.counts.get("incomplete")),
        seconds=values.positive(run.seconds),
        tokens_per_second=values.positive(run.tokens_per_second),
        ttft_ms=values.statistics(run.ttft),
        tpot_ms=values.statistics(run.between_tokens),
        e2e_ms=values.statistics(run.e2e, 1e3),
        flags=values.flags(errors, weak=run.unresolved or _fell_behind(run), not_steady=_grew(run)),
    )
    return setting, stage


def shown(strategy: Mapping[str, Any]) -> str:
    """`concurrent 16`, `constant 2.5`, `synchronous`."""
    size = values.number(strategy.get("streams" if strategy.get("type_") == "concurrent" else "rate"))
    name = values.text(strategy.get("type_")) or "unnamed"
    return name if size is None else f"{name} {size:g}"


def _asked(strategy: Mapping[str, Any]) -> int | None:
    """Of a closed loop; `worker_count` and `max_concurrency` are settings of the client."""
    if strategy.get("type_") == "synchronous":
        return 1
    return values.level(strategy.get("streams")) if strategy.get("type_") == "concurrent" else None


def _fell_behind(run: Run) -> bool:
    """Whether an open loop sent clearly less than was asked: its client was at a limit of its own.

    The last requests are waited for and nothing is sent meanwhile, about the mean latency long.
    """
    seconds, rate = values.positive(run.seconds), values.positive(run.strategy.get("rate"))
    if seconds is None or rate is None or _asked(run.strategy) is not None:
        return False
    sending = max(seconds - (values.positive(run.e2e.get("mean")) or 0.0), seconds / 2)
    return _sent(run) < _KEPT_UP * rate * sending


def _grew(run: Run) -> bool:
    """Whether so much of an open loop still ran when it ended that its queue had been growing."""
    cut = values.ratio(values.count(run.counts.get("incomplete")), _sent(run))
    return _asked(run.strategy) is None and cut is not None and cut > _STEADY_INCOMPLETE


def _sent(run: Run) -> int:
    return sum(values.count(run.counts.get(name)) or 0 for name in ("successful", "errored", "incomplete"))
