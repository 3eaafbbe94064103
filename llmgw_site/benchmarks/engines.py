"""`python -m llmgw_site.benchmarks.engines`: a process that answers at every path as a vLLM of one rank does; prints its port.

As little work as can be, so that what is measured is the reading."""

from __future__ import annotations

import asyncio
import sys

# families of a vLLM of 2026 by their kind; the labels are as long as real ones
GAUGES = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "engine_sleep_state", "lora_requests_info")
COUNTERS = ("generation_tokens", "prompt_tokens", "num_preemptions", "prefix_cache_hits", "prefix_cache_queries", "mm_cache_hits")
HISTOGRAMS = (
    "time_to_first_token_seconds", "inter_token_latency_seconds", "request_time_per_output_token_seconds",
    "e2e_request_latency_seconds", "request_queue_time_seconds", "request_inference_time_seconds", "request_prefill_time_seconds",
    "request_decode_time_seconds", "request_prompt_tokens", "request_generation_tokens", "iteration_tokens_total",
    "request_max_num_generation_tokens", "request_params_n", "request_params_max_tokens", "request_prefill_kv_computed_tokens",
)  # fmt: skip
BOUNDS = (
    "0.001", "0.005", "0.01", "0.02", "0.04", "0.06", "0.08", "0.1", "0.25", "0.5", "0.75", "1.0", "2.5", "5.0", "7.5", "10.0",
    "20.0", "40.0", "80.0", "160.0", "640.0", "2560.0", "+Inf",
)  # fmt: skip
LABELS = 'engine="0",model_name="meta-llama/Llama-3.3-70B-Instruct"'


def answer_text() -> str:
    """About 50 kB, as an engine under load writes it."""
    lines = []
    for name in GAUGES:
        lines += [f"# HELP vllm:{name} A gauge of the engine.", f"# TYPE vllm:{name} gauge", f"vllm:{name}{{{LABELS}}} 7.0"]
    for name in COUNTERS:
        lines += [f"# HELP vllm:{name}_total A counter of the engine.", f"# TYPE vllm:{name}_total counter"]
        lines += [f"vllm:{name}_total{{{LABELS}}} 402117.0", f"vllm:{name}_created{{{LABELS}}} 1.7960055421e+09"]
    for name in HISTOGRAMS:
        lines += [f"# HELP vllm:{name} Histogram of the engine's requests.", f"# TYPE vllm:{name} histogram"]
        lines += [f'vllm:{name}_bucket{{le="{bound}",{LABELS}}} {9 * (at + 1)}.0' for at, bound in enumerate(BOUNDS)]
        lines += [f"vllm:{name}_count{{{LABELS}}} 207.0", f"vllm:{name}_sum{{{LABELS}}} 1812.5"]
    handlers = ("/v1/completions", "/v1/chat/completions", "/v1/models", "/health")
    for handler in handlers:
        lines += [f'http_request_duration_seconds_bucket{{handler="{handler}",le="{bound}"}} 5.0' for bound in BOUNDS]
    return "\n".join(lines) + "\n"


class Engine(asyncio.Protocol):
    """One request a connection, as the reader asks."""

    response = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.asked = b""

    def data_received(self, data: bytes) -> None:
        self.asked += data
        if self.asked.endswith(b"\r\n\r\n") and isinstance(self.transport, asyncio.WriteTransport):
            self.transport.write(self.response)
            self.transport.close()


async def serve() -> None:
    """Until the process is ended, or its standard input is closed by whoever started it."""
    body = answer_text().encode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    Engine.response = head.encode() + body
    server = await asyncio.get_running_loop().create_server(Engine, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
