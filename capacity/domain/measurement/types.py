"""A sweep as values: what was found at each level of load, whatever tool ran it.

Times are milliseconds, rates are per second over the whole deployment that was measured, tokens are output tokens. What a file
does not say is None or absent, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Latency = Literal["ttft", "tpot", "e2e"]
Kind = Literal["located", "at_least", "never_met", "not_binding"]
Flag = Literal[
    "weak",  # shorter than 30 s, fewer than 3 × level requests, cut off, or its client could not keep up
    "non_monotonic",  # it meets the SLO above a level that does not
    "asked",  # its level is what was asked for; what was truly in flight is not in the file
    "repeated",  # several runs of one level
    "errors",  # more errors than the SLO allows
    "errors_unknown",  # the file does not say how many requests failed
    "not_steady",  # an open loop whose queue still grew when it ended
    "estimated",  # a latency that its level rests on is estimated
    "client_queue",  # by rate and with a cap: its TTFT leaves out the wait in the client's own queue
    "input_tokens",  # its tokens are input tokens: embeddings and rerank have no output
    "simulated",  # the file says that no engine was measured
]

LATENCIES: Final[tuple[Latency, ...]] = ("ttft", "tpot", "e2e")
KINDS: Final[tuple[Kind, ...]] = ("located", "at_least", "never_met", "not_binding")
DEFAULT_ERROR_SHARE: Final = 0.01
SHOWN: Final = ("mean", "p50", "p90", "p95", "p99")
"""The statistics that every answer names, null where the file lacks them."""

Statistics = Mapping[str, float]
"""`mean`, and percentiles as `p50` or `p99.9` → ms. A key that is absent is not in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """`percentile` of `latency` is at most `ms`; equality meets it."""

    latency: Latency
    percentile: int
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """All bounds, and at most that share of errors, errors ÷ (finished + errors)."""

    bounds: tuple[Bound, ...]
    max_error_share: float = DEFAULT_ERROR_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One level of load, as one run found it.

    `asked` is the setting of a closed loop (never a cap, a peak or a rate); `mean_in_flight` the mean that the tool measured or
    that Little's law gives. `requests` finished without error, `errors` did not, `incomplete` still ran at the end and are
    neither. `where` names the file and place for the person.
    """

    where: str
    asked: int | None = None
    mean_in_flight: float | None = None
    requests: int | None = None
    errors: int | None = None
    incomplete: int | None = None
    seconds: float | None = None
    tokens_per_second: float | None = None
    ttft_ms: Statistics = field(default_factory=dict)
    tpot_ms: Statistics = field(default_factory=dict)
    e2e_ms: Statistics = field(default_factory=dict)
    flags: frozenset[Flag] = frozenset()

    def statistics(self, latency: Latency) -> Statistics:
        return {"ttft": self.ttft_ms, "tpot": self.tpot_ms, "e2e": self.e2e_ms}[latency]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a sweep was made with. Stages of equal settings make one sweep; different ones are never mixed.

    `input_tokens`, `output_tokens`: mean lengths of a request, rounded where they were drawn. `hints`: what the file says
    besides (GPU count, parallelism, replicas, labels, dates), for the person and the evidence; it separates no sweeps.
    """

    tool: str
    tool_version: str | None = None
    model: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    hardware: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    dataset: str | None = None
    variant: str | None = None
    """Any other setting that keeps two sweeps apart: speculative decoding, a label, a scenario."""
    hints: Mapping[str, str] = field(default_factory=dict, compare=False)
    drawn: bool = field(default=False, compare=False)
    """The lengths are means of requests of different length: they part two sweeps only where they lie far apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A row or file that was left out, and why in one sentence."""

    where: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a file holds: stages with the setting of each, and what was left out. Nothing usable is an `Unreadable` instead."""

    stages: tuple[tuple[Setting, Stage], ...]
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Stages of one setting by rising level, each level once."""

    setting: Setting
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Both numbers are of one stage; where the SLO was never met, 0 and the tokens of the lowest stage."""

    max_concurrency: int
    tokens_per_second: float
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """`sweep` with the flags that judging added; `measured` None: it gives no measurement. `why` in one sentence, always."""

    sweep: Sweep
    measured: Measured | None
    why: str
    chosen: Stage | None = None
