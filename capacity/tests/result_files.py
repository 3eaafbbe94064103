"""Result files as tests upload them: three runs of `vllm bench serve`, of which the highest misses `ttft p95 500`."""

from __future__ import annotations

import json
from typing import Any

LEVELS = ((1, 100.0, 50.0), (2, 190.0, 80.0), (4, 300.0, 900.0))


def vllm_run(level: int, tokens: float, ttft: float, **fields: Any) -> dict[str, Any]:
    told = {"mean_ttft_ms": ttft / 2, "median_ttft_ms": ttft / 2, "p95_ttft_ms": ttft, "p99_ttft_ms": ttft * 2}
    return {
        "backend": "vllm",
        "model_id": "llama-8b",
        "num_prompts": 600,
        "request_rate": "inf",
        "max_concurrency": level,
        "duration": 600 * 128 / tokens,
        "completed": 600,
        "failed": 0,
        "total_input_tokens": 600 * 512,
        "total_output_tokens": 600 * 128,
        "request_throughput": tokens / 128,
        "output_throughput": tokens,
        "total_token_throughput": tokens * 5,
        **told,
        **fields,
    }


def vllm_lines(*levels: tuple[int, float, float], **fields: Any) -> bytes:
    """As `--append-result` writes them."""
    return "\n".join(json.dumps(vllm_run(*level, **fields)) for level in levels or LEVELS).encode()
