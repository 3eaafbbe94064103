"""What a sweep is asked, what it says while it runs, and what it gives.

The sweep itself is `capacity.bench.sweep.sweep(asked, *, progress, should_stop) -> Swept`. It blocks the thread that calls it and
drives its requests from another, so that `progress(Progress)` and `should_stop() -> bool`, which are called in the caller's
thread about four times a second, may ask a database without disturbing what is measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from capacity.domain.measurement.types import Setting, Slo, Stage
from capacity.sources.address import Network

Api = Literal["chat", "completions", "embeddings", "rerank"]
Doing = Literal["preparing", "warming_up", "measuring", "over"]
Ended = Literal["complete", "stopped", "failed"]

TOOL: Final = "llmgw"
STREAMING: Final = ("chat", "completions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One sweep of one endpoint.

    `endpoint`: its base URL, with or without the `/v1` of its API. `levels` None: `auto`, up to `most`. `seconds` of each level,
    warm-up apart. `input_tokens`, `output_tokens`: of each request. `timeout_seconds`: of one request, to its last token.
    `token`: a bearer token, in no text and no error. `served_name`: what the endpoint calls `model`, where that
    is another name. `same_prompt`: every request sends one prompt, so that a prefix cache is
    part of what is measured; else each prompt is new. `allowed_networks`: addresses that are asked although they are refused by
    default (capacity.sources.address).
    """

    endpoint: str
    model: str
    slo: Slo
    levels: tuple[int, ...] | None = None
    api: Api = "chat"
    seconds: float = 60.0
    input_tokens: int = 512
    output_tokens: int = 128
    most: int = 1024
    timeout_seconds: float = 120.0
    token: str | None = field(default=None, repr=False)
    served_name: str = ""
    same_prompt: bool = False
    allowed_networks: Sequence[Network] = ()

    @property
    def streams(self) -> bool:
        return self.api in STREAMING


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """`level`: the one under way, None between two. `stages`: those that are over, in the order in which they ran.

    `levels_left`: how many more are likely, the one under way among them, and `seconds_left` with them. `in_flight` and
    `finished` are of the level under way."""

    doing: Doing
    level: int | None = None
    stages: tuple[Stage, ...] = ()
    levels_left: int | None = None
    seconds_left: float | None = None
    in_flight: int = 0
    finished: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """`stages` by rising level, each level once. `ended`: `complete`; `stopped` when asked to; `failed` where the endpoint could
    not be swept to the end (no stage at all, or those before it stopped answering). `why` in one sentence, always. `knee`: the
    level from which on twice the level gave hardly more tokens a second, None where none was seen. `evidence` is plain JSON:
    what the engine says of itself, and for each level what a stage has no field for."""

    setting: Setting
    stages: tuple[Stage, ...]
    ended: Ended
    why: str
    knee: int | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
