"""Which metric says what, engine by engine: data, so that a new engine or a renamed metric is a row here and nothing else.

Names are written with underscores: engines say `vllm:num_requests_running`, and their OpenMetrics answers say
`vllm_num_requests_running`. A quantity has alternatives, tried in order: the first whose terms are all there is the value, so
that a second view of the same number (Ray's `ray_vllm_…` beside `vllm:…`) is never added to it. An alternative is a sum of terms.

Left out on purpose: gauges of tokens per second (they keep their last value when idle), `num_requests_waiting_by_reason` (adds
up to `num_requests_waiting` again) and sums of finished requests' tokens where a counter of tokens exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A metric, added up over its series, of which only those with `labels` count. `optional`: absent adds nothing."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    sign: int = 1
    optional: bool = False


Quantity = tuple[tuple[Term, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineNames:
    """`kv_usage` are shares of 1 a rank, or used ÷ `kv_total` where that is given."""

    engine: str
    running: Quantity
    waiting: Quantity
    output_tokens: Quantity = ()
    prompt_tokens: Quantity = ()
    kv_usage: Quantity = ()
    kv_total: Quantity = ()

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        return (self.running, self.waiting, self.output_tokens, self.prompt_tokens, self.kv_usage, self.kv_total)


def _any(*names: str) -> Quantity:
    return tuple((Term(name=name),) for name in names)


def _vllm(prefix: str) -> EngineNames:
    waiting = Term(name=f"{prefix}num_requests_waiting")
    swapped = Term(name=f"{prefix}num_requests_swapped", optional=True)  # V0: preempted, still held by the engine
    return EngineNames(
        engine="vllm",
        running=_any(f"{prefix}num_requests_running"),
        waiting=((waiting, swapped),),
        output_tokens=_any(f"{prefix}generation_tokens_total"),
        prompt_tokens=_any(f"{prefix}prompt_tokens_total"),
        kv_usage=_any(f"{prefix}kv_cache_usage_perc", f"{prefix}gpu_cache_usage_perc"),  # one number, renamed in 0.9.2
    )


def _triton(kind: str) -> Term:
    return Term(name="nv_trt_llm_request_metrics", labels={"request_type": kind})


def _triton_kv(kind: str) -> Quantity:
    return ((Term(name="nv_trt_llm_kv_cache_block_metrics", labels={"kv_cache_block_type": kind}),),)


# The first engine of which any running or waiting metric is in an answer is the one that answered.
ENGINES: tuple[EngineNames, ...] = (
    _vllm("vllm_"),
    _vllm("ray_vllm_"),
    EngineNames(
        engine="sglang",
        running=_any("sglang_num_running_reqs"),
        waiting=_any("sglang_num_queue_reqs"),
        output_tokens=_any("sglang_generation_tokens_total"),
        prompt_tokens=_any("sglang_prompt_tokens_total"),
        kv_usage=_any("sglang_token_usage"),
    ),
    EngineNames(
        engine="llama.cpp",
        running=_any("llamacpp_requests_processing"),
        waiting=_any("llamacpp_requests_deferred"),
        output_tokens=_any("llamacpp_tokens_predicted_total"),  # moves when a request ends
        prompt_tokens=_any("llamacpp_prompt_tokens_total"),
        kv_usage=_any("llamacpp_kv_cache_usage_ratio"),  # gone in newer ones
    ),
    EngineNames(
        engine="tgi",
        running=_any("tgi_batch_current_size"),
        waiting=_any("tgi_queue_size"),
        output_tokens=_any("tgi_request_generated_tokens_sum"),
        prompt_tokens=_any("tgi_request_input_length_sum"),
    ),
    EngineNames(
        engine="lmdeploy",
        running=_any("lmdeploy_num_requests_running"),
        waiting=((Term(name="lmdeploy_num_requests_waiting"), Term(name="lmdeploy_num_api_requests_waiting", optional=True)),),
        output_tokens=_any("lmdeploy_generation_tokens_total"),
        prompt_tokens=_any("lmdeploy_prompt_tokens_total"),
        kv_usage=_any("lmdeploy_gpu_cache_usage_perc"),
    ),
    EngineNames(
        engine="tensorrt-llm",
        running=_any("trtllm_num_requests_running"),
        waiting=_any("trtllm_num_requests_waiting"),
        output_tokens=_any("trtllm_generation_tokens_total"),
        prompt_tokens=_any("trtllm_prompt_tokens_total"),
        kv_usage=_any("trtllm_kv_cache_utilization"),
    ),
    EngineNames(
        engine="triton-tensorrt-llm",
        running=((_triton("scheduled"),),),
        # active − scheduled where positive: a scheduled request is not always among the active ones.
        waiting=((_triton("active"), Term(name="nv_trt_llm_request_metrics", labels={"request_type": "scheduled"}, sign=-1)),),
        kv_usage=_triton_kv("used"),
        kv_total=_triton_kv("max"),
    ),
)

# Ranks that repeat the requests of their group instead of sharing them: series that differ in these alone count once.
COPY_LABELS = frozenset({"tp_rank", "pp_rank", "moe_ep_rank"})

WANTED: frozenset[str] = frozenset(
    term.name for engine in ENGINES for term in chain.from_iterable(chain.from_iterable(engine.quantities))
)
