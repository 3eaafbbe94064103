"""Which metric says what, engine by engine: data, so that a new engine or a renamed metric is a row here and nothing else.

Names are written with underscores: engines say `vllm:num_requests_running`, and their OpenMetrics answers say
`vllm_num_requests_running`. A quantity has alternatives, tried in order: the first whose terms are all there is the value, so
that a second view of the same number (Ray's `ray_vllm_…` beside `vllm:…`) is never added to it. An alternative is a sum of terms.
Latencies are histograms in seconds; of a time per output token the mean of each request comes first (what an SLO means by TPOT),
then the gap between two tokens, which engines of other versions count under either name.

Left out on purpose: gauges of tokens per second (they keep their last value when idle), `num_requests_waiting_by_reason` (adds
up to `num_requests_waiting` again) and sums of finished requests' tokens where a counter of tokens exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from capacity.ports import Latency


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A metric, added up over its series, of which only those with `labels` count. `optional`: absent adds nothing."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    sign: int = 1
    optional: bool = False


Quantity = tuple[tuple[Term, ...], ...]
LatencyNames = Mapping[Latency, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineNames:
    """`prefix_queries`, `prefix_hits`: input tokens, and those of them that lay in the prefix cache. `kv_usage` are shares of 1 a
    rank, or used ÷ `kv_total` where that is given. `latencies`: alternatives, without `_bucket`. `model_label`: what tells the
    models of one engine apart."""

    engine: str
    running: Quantity
    waiting: Quantity
    output_tokens: Quantity = ()
    prompt_tokens: Quantity = ()
    prefix_queries: Quantity = ()
    prefix_hits: Quantity = ()
    kv_usage: Quantity = ()
    kv_total: Quantity = ()
    latencies: LatencyNames = field(default_factory=dict)
    model_label: str = "model_name"

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        counters = (self.output_tokens, self.prompt_tokens, self.prefix_queries, self.prefix_hits)
        return (self.running, self.waiting, *counters, self.kv_usage, self.kv_total)


def _any(*names: str) -> Quantity:
    return tuple((Term(name=name),) for name in names)


def _latencies(prefix: str, ttft: str, tpot: tuple[str, ...], e2e: str) -> LatencyNames:
    return {"ttft": (f"{prefix}{ttft}",), "tpot": tuple(f"{prefix}{name}" for name in tpot), "e2e": (f"{prefix}{e2e}",)}


TTFT, E2E = "time_to_first_token_seconds", "e2e_request_latency_seconds"
TPOT = ("request_time_per_output_token_seconds", "inter_token_latency_seconds", "time_per_output_token_seconds")


def _vllm(prefix: str) -> EngineNames:
    waiting = Term(name=f"{prefix}num_requests_waiting")
    swapped = Term(name=f"{prefix}num_requests_swapped", optional=True)  # V0: preempted, still held by the engine
    return EngineNames(
        engine="vllm",
        running=_any(f"{prefix}num_requests_running"),
        waiting=((waiting, swapped),),
        output_tokens=_any(f"{prefix}generation_tokens_total"),
        prompt_tokens=_any(f"{prefix}prompt_tokens_total"),
        # tokens; renamed when the word gpu went
        prefix_queries=_any(f"{prefix}prefix_cache_queries_total", f"{prefix}gpu_prefix_cache_queries_total"),
        prefix_hits=_any(f"{prefix}prefix_cache_hits_total", f"{prefix}gpu_prefix_cache_hits_total"),
        kv_usage=_any(f"{prefix}kv_cache_usage_perc", f"{prefix}gpu_cache_usage_perc"),  # one number, renamed in 0.9.2
        latencies=_latencies(prefix, TTFT, TPOT, E2E),
    )


def _triton(kind: str) -> Term:
    return Term(name="nv_trt_llm_request_metrics", labels={"request_type": kind})


def _triton_kv(kind: str) -> Quantity:
    return ((Term(name="nv_trt_llm_kv_cache_block_metrics", labels={"kv_cache_block_type": kind}),),)


# The first engine of which any running, waiting or latency metric is in an answer is the one that answered.
ENGINES: tuple[EngineNames, ...] = (
    _vllm("vllm_"),
    _vllm("ray_vllm_"),
    EngineNames(
        engine="sglang",
        running=_any("sglang_num_running_reqs"),
        waiting=_any("sglang_num_queue_reqs"),
        output_tokens=_any("sglang_generation_tokens_total"),
        prompt_tokens=_any("sglang_prompt_tokens_total"),
        prefix_queries=_any("sglang_prompt_tokens_total"),
        prefix_hits=_any("sglang_cached_tokens_total"),
        kv_usage=_any("sglang_token_usage"),
        latencies=_latencies("sglang_", TTFT, TPOT, E2E),
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
        latencies={"tpot": ("tgi_request_mean_time_per_token_duration",), "e2e": ("tgi_request_duration",)},
    ),
    EngineNames(
        engine="lmdeploy",
        running=_any("lmdeploy_num_requests_running"),
        waiting=((Term(name="lmdeploy_num_requests_waiting"), Term(name="lmdeploy_num_api_requests_waiting", optional=True)),),
        output_tokens=_any("lmdeploy_generation_tokens_total"),
        prompt_tokens=_any("lmdeploy_prompt_tokens_total"),
        kv_usage=_any("lmdeploy_gpu_cache_usage_perc"),
        latencies=_latencies("lmdeploy_", TTFT, ("iter_token_latency",), E2E),
    ),
    EngineNames(
        engine="tensorrt-llm",
        running=_any("trtllm_num_requests_running"),
        waiting=_any("trtllm_num_requests_waiting"),
        output_tokens=_any("trtllm_generation_tokens_total"),
        prompt_tokens=_any("trtllm_prompt_tokens_total"),
        kv_usage=_any("trtllm_kv_cache_utilization"),
        latencies=_latencies("trtllm_", TTFT, TPOT, E2E),
    ),
    EngineNames(
        engine="triton-tensorrt-llm",
        running=((_triton("scheduled"),),),
        # active − scheduled where positive: a scheduled request is not always among the active ones.
        waiting=((_triton("active"), Term(name="nv_trt_llm_request_metrics", labels={"request_type": "scheduled"}, sign=-1)),),
        kv_usage=_triton_kv("used"),
        kv_total=_triton_kv("max"),
        model_label="model",
    ),
    EngineNames(
        engine="dynamo",  # the front end; its workers answer with their engines' own names
        # In flight from the first byte to the last; queued, until the first token, are among them.
        running=((Term(name="dynamo_frontend_inflight_requests"), Term(name="dynamo_frontend_queued_requests", sign=-1)),),
        waiting=_any("dynamo_frontend_queued_requests"),
        output_tokens=_any("dynamo_frontend_output_tokens_total"),
        latencies=_latencies("dynamo_frontend_", TTFT, ("inter_token_latency_seconds",), "request_duration_seconds"),
        model_label="model",
    ),
    # Before 2026, at /prometheus/metrics: latencies without a prefix, and no requests in flight.
    EngineNames(engine="tensorrt-llm", running=(), waiting=(), latencies=_latencies("", TTFT, TPOT[1:], E2E)),
)

# Ranks that repeat the requests of their group instead of sharing them: series that differ in these alone count once.
COPY_LABELS = frozenset({"tp_rank", "pp_rank", "moe_ep_rank"})

WANTED: frozenset[str] = frozenset(
    chain(
        (term.name for engine in ENGINES for term in chain.from_iterable(chain.from_iterable(engine.quantities))),
        (f"{name}_bucket" for engine in ENGINES for names in engine.latencies.values() for name in names),
    )
)

# What answers at a /metrics and is no engine: how its metrics begin, and the sentence.
NOT_ENGINES: tuple[tuple[str, str], ...] = (
    ("litellm_", "A LiteLLM proxy answers here: a gateway, which does not say how many requests are in flight."),
    ("DCGM_FI_", "No engine answers here, but NVIDIA's DCGM exporter."),
    ("nvidia_smi_", "No engine answers here, but an exporter of nvidia-smi."),
    ("node_cpu_", "No engine answers here, but a host's node exporter."),
)
