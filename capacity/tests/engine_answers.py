"""Short answers of every engine over its versions, written by hand in the engines' own names: what the vectors are made from."""

from __future__ import annotations

from dataclasses import dataclass, field

HISTOGRAM = (("0.1", 2), ("0.5", 7), ("+Inf", 9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an engine says, and the right reading of it. `lines` are name{labels} → value; `latencies` are names of histograms of
    nine observations each, in the order ttft, tpot, e2e."""

    engine: str
    lines: dict[str, str]
    running: int | None
    waiting: int | None
    tokens: int | None = None
    kv: tuple[float, float] | None = None
    latencies: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        rows = [f"{name} {value}" for name, value in self.lines.items()]
        return "\n".join([*rows, *(row for name in self.latencies.values() for row in histogram(name))]) + "\n"


def histogram(name: str, labels: str = "") -> list[str]:
    return [f'{name}_bucket{{{labels}le="{bound}"}} {count}' for bound, count in HISTOGRAM] + [f"{name}_count{{{labels[:-1]}}} 9"]


def vllm(prefix: str = "vllm:", kv: tuple[str, ...] = ("kv_cache_usage_perc",), tpot: str = "", **more: str) -> Answer:
    swapped = int(more.get("num_requests_swapped", "0"))
    return Answer(
        engine="vllm",
        lines={
            f'{prefix}num_requests_running{{model_name="m"}}': "8.0",
            f'{prefix}num_requests_waiting{{model_name="m"}}': "4.0",
            f'{prefix}generation_tokens_total{{model_name="m"}}': "11043.0",
            f'{prefix}generation_tokens_created{{model_name="m"}}': "1.79e+09",
            f'{prefix}request_generation_tokens_sum{{model_name="m"}}': "9000.0",
            **{f'{prefix}{name}{{model_name="m"}}': "0.25" for name in kv},
            **{f'{prefix}{name}{{model_name="m"}}': value for name, value in more.items()},
        },
        running=8,
        waiting=4 + swapped,
        tokens=11_043,
        kv=(0.25, 0.25),
        latencies={
            "ttft": f"{prefix}time_to_first_token_seconds",
            "tpot": f"{prefix}{tpot or 'request_time_per_output_token_seconds'}",
            "e2e": f"{prefix}e2e_request_latency_seconds",
        },
    )


def sglang(label: str, tpot: str = "inter_token_latency_seconds", **more: str) -> Answer:
    return Answer(
        engine="sglang",
        lines={
            f"sglang:num_running_reqs{{{label}}}": "23",
            f"sglang:num_queue_reqs{{{label}}}": "5",
            f"sglang:token_usage{{{label}}}": "0.62",
            f"sglang:gen_throughput{{{label}}}": "1412.7",
            'sglang:generation_tokens_total{model_name="m"}': "83441",
            **{f"sglang:{name}{{{label}}}": value for name, value in more.items()},
        },
        running=23,
        waiting=5,
        tokens=83_441,
        kv=(0.62, 0.62),
        latencies={
            "ttft": "sglang:time_to_first_token_seconds",
            "tpot": f"sglang:{tpot}",
            "e2e": "sglang:e2e_request_latency_seconds",
        },
    )


def llamacpp(**more: str) -> Answer:
    kv = (0.5, 0.5) if "kv_cache_usage_ratio" in more else None
    lines = {"requests_processing": "4", "requests_deferred": "3", "tokens_predicted_total": "384", **more}
    lines |= {"predicted_tokens_seconds": "57.9", "n_busy_slots_per_decode": "-nan"}
    return Answer(
        engine="llama.cpp",
        lines={f"llamacpp:{name}": value for name, value in lines.items()},
        running=4,
        waiting=3,
        tokens=384,
        kv=kv,
    )


def _triton(kind: str) -> str:
    return f'nv_trt_llm_request_metrics{{model="tensorrt_llm",request_type="{kind}",version="1"}}'


def _triton_kv(kind: str) -> str:
    return f'nv_trt_llm_kv_cache_block_metrics{{kv_cache_block_type="{kind}",model="tensorrt_llm",version="1"}}'


OLD_TPOT, ITL = "time_per_output_token_seconds", "inter_token_latency_seconds"
ANSWERS: dict[str, Answer] = {
    "vLLM V0 0.5": vllm(kv=("gpu_cache_usage_perc",), tpot=OLD_TPOT, num_requests_swapped="2"),
    "vLLM V1 0.8": vllm(kv=("gpu_cache_usage_perc",), tpot=OLD_TPOT),
    "vLLM 0.10.2": vllm(kv=("gpu_cache_usage_perc", "kv_cache_usage_perc"), tpot=ITL),
    "vLLM 0.12": vllm(),
    "vLLM 0.33": vllm(num_requests_waiting_by_reason="4.0", engine_sleep_state="0"),
    "vLLM in older Ray Serve": vllm("ray_vllm:", tpot=OLD_TPOT),
    "vLLM in Ray Serve": vllm("ray_vllm_"),
    "SGLang 0.4.0": sglang('name="m"', OLD_TPOT),
    "SGLang 0.4.6": sglang('model_name="m"', num_prefill_infight_queue_reqs="7"),
    "SGLang 0.5": sglang('dp_rank="0",engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"', full_token_usage="0.7"),
    "SGLang 0.5.23": sglang('dp_rank="0",model_name="m",moe_ep_rank="0",tp_rank="0"', "request_time_per_output_token_seconds"),
    "llama.cpp, older": llamacpp(kv_cache_usage_ratio="0.5"),
    "llama.cpp": llamacpp(),
    "TGI": Answer(
        engine="tgi",
        lines={"tgi_batch_current_size": "6", "tgi_queue_size": "2", "tgi_request_generated_tokens_sum": "512"},
        running=6,
        waiting=2,
        tokens=512,
        latencies={"tpot": "tgi_request_mean_time_per_token_duration", "e2e": "tgi_request_duration"},
    ),
    "LMDeploy 0.9": Answer(
        engine="lmdeploy",
        lines={
            'lmdeploy:num_requests_running{engine="0"}': "14",
            'lmdeploy:num_requests_waiting{engine="0"}': "6",
            'lmdeploy:num_api_requests_waiting{engine="0"}': "3",
            'lmdeploy:gpu_cache_usage_perc{engine="0"}': "0.47",
            'lmdeploy:generation_tokens_total{engine="0"}': "30693",
        },
        running=14,
        waiting=9,
        tokens=30_693,
        kv=(0.47, 0.47),
        latencies={
            "ttft": "lmdeploy:time_to_first_token_seconds",
            "tpot": "lmdeploy:iter_token_latency",
            "e2e": "lmdeploy:e2e_request_latency_seconds",
        },
    ),
    "TensorRT-LLM 2026": Answer(
        engine="tensorrt-llm",
        lines={
            'trtllm_num_requests_running{model_name="m"}': "9",
            'trtllm_num_requests_waiting{model_name="m"}': "1",
            'trtllm_kv_cache_utilization{model_name="m"}': "0.31",
            'trtllm_generation_tokens_total{model_name="m"}': "777",
        },
        running=9,
        waiting=1,
        tokens=777,
        kv=(0.31, 0.31),
        latencies={
            "ttft": "trtllm_time_to_first_token_seconds",
            "tpot": "trtllm_time_per_output_token_seconds",
            "e2e": "trtllm_e2e_request_latency_seconds",
        },
    ),
    "TensorRT-LLM, older": Answer(
        engine="tensorrt-llm",
        lines={'request_success_total{engine_type="undefined"}': "5"},
        running=None,
        waiting=None,
        latencies={
            "ttft": "time_to_first_token_seconds",
            "tpot": "time_per_output_token_seconds",
            "e2e": "e2e_request_latency_seconds",
        },
    ),
    "Triton with TensorRT-LLM": Answer(
        engine="triton-tensorrt-llm",
        lines={
            _triton("active"): "12",
            _triton("scheduled"): "8",
            _triton("max"): "128",
            _triton_kv("used"): "25",
            _triton_kv("max"): "100",
            'nv_inference_request_duration_us{model="ensemble",version="1"}': "21732535077",
        },
        running=8,
        waiting=4,
        kv=(0.25, 0.25),
    ),
    "Dynamo's vLLM worker": vllm(dynamo_component_inflight_requests="99"),
    "Dynamo's front end": Answer(
        engine="dynamo",
        lines={
            'dynamo_frontend_inflight_requests{model="m"}': "11",
            'dynamo_frontend_queued_requests{model="m"}': "4",
            'dynamo_frontend_output_tokens_total{model="m"}': "100",
        },
        running=7,
        waiting=4,
        tokens=100,
        latencies={
            "ttft": "dynamo_frontend_time_to_first_token_seconds",
            "tpot": "dynamo_frontend_inter_token_latency_seconds",
            "e2e": "dynamo_frontend_request_duration_seconds",
        },
    ),
}
