"""The simulator's /metrics, in vLLM V1's names, types, labels and histogram bounds (vLLM 0.32: vllm/v1/metrics/loggers.py)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

TTFT_BOUNDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
TOKEN_BOUNDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
E2E_BOUNDS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0,
)  # fmt: skip
FINISHED_REASONS = ("stop", "length", "abort", "error")


class Histogram:
    """A Prometheus histogram; `bounds` are upper bounds in rising order, +Inf not among them."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def lines(self, name: str, labels: str) -> Iterator[str]:
        total = 0
        for bound, number in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            total += number
            yield f'{name}_bucket{{{labels},le="{bound}"}} {total}.0'
        yield f"{name}_count{{{labels}}} {total}.0"
        yield f"{name}_sum{{{labels}}} {self.sum}"


class EngineMetrics:
    def __init__(self, model: str) -> None:
        self._labels = f'engine="0",model_name="{_escaped(model)}"'
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.ended = dict.fromkeys(FINISHED_REASONS, 0)
        self.ttft = Histogram(TTFT_BOUNDS)
        self.token = Histogram(TOKEN_BOUNDS)
        self.e2e = Histogram(E2E_BOUNDS)

    def first_token(self, prompt_tokens: int, seconds: float) -> None:
        self.prompt_tokens += prompt_tokens
        self.generation_tokens += 1
        self.ttft.observe(seconds)

    def further_tokens(self, number: int, seconds_each: float) -> None:
        self.generation_tokens += number
        self.token.observe(seconds_each, number)

    def finished(self, reason: str, seconds: float | None = None) -> None:
        self.ended[reason] += 1
        if seconds is not None:
            self.e2e.observe(seconds)

    def render(self, *, running: int, waiting: int, kv_cache_usage: float) -> str:
        """The text exposition, version 0.0.4."""
        labels = self._labels
        lines: list[str] = []
        for name, help_text, value in (
            ("num_requests_running", "Number of requests in model execution batches.", running),
            ("num_requests_waiting", "Number of requests waiting to be processed.", waiting),
            ("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", kv_cache_usage),
        ):
            lines += _head(name, help_text, "gauge")
            lines.append(f"vllm:{name}{{{labels}}} {float(value)}")
        for name, help_text, value in (
            ("prompt_tokens_total", "Number of prefill tokens processed.", self.prompt_tokens),
            ("generation_tokens_total", "Number of generation tokens processed.", self.generation_tokens),
        ):
            lines += _head(name, help_text, "counter")
            lines.append(f"vllm:{name}{{{labels}}} {float(value)}")
        lines += _head("request_success_total", "Count of successfully processed requests.", "counter")
        lines += [
            f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {float(number)}'
            for reason, number in self.ended.items()
        ]
        return "\n".join([*lines, *self._histogram_lines()]) + "\n"

    def _histogram_lines(self) -> Iterator[str]:
        for name, help_text, histogram in (
            ("time_to_first_token_seconds", "Histogram of time to first token in seconds.", self.ttft),
            ("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", self.token),
            ("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", self.e2e),
        ):
            yield from _head(name, help_text, "histogram")
            yield from histogram.lines(f"vllm:{name}", self._labels)


def _head(name: str, help_text: str, kind: str) -> tuple[str, str]:
    return f"# HELP vllm:{name} {help_text}", f"# TYPE vllm:{name} {kind}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
